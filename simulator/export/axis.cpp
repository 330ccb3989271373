#include "simulator/export/axis.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "simulator/export/svg.h"

namespace tidemark {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array size_units = {Unit{"B", 1},
                                   Unit{"KiB", 1024.0},
                                   Unit{"MiB", 1048576.0},
                                   Unit{"GiB", 1073741824.0},
                                   Unit{"TiB", 1099511627776.0},
                                   Unit{"PiB", 1125899906842624.0}};
constexpr std::array time_units = {Unit{"ns", 1}, Unit{"µs", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};

// The largest unit of which there is at least one.
template <typename Units>
Unit unit_for(const Units& units, double largest) {
  Unit best = units.front();
  for (const Unit& unit : units)
    if (largest >= unit.size) best = unit;
  return best;
}

Axis make_axis(const Unit& unit, double smallest, double largest, int steps) {
  const double low = smallest / unit.size, high = std::max(largest / unit.size, low + 1e-9);
  const double step = nice_step(high - low, steps);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  Axis axis{std::string(unit.name),
            {},
            first * step * unit.size,
            std::max(last, first + 1) * step * unit.size};
  for (double i = first; i <= std::max(last, first + 1); ++i)
    axis.ticks.push_back({i * step * unit.size, fmt::format("{:.6g}", i * step)});
  return axis;
}

}  // namespace

Axis size_axis(Bytes largest, int steps) { return size_axis_from({}, largest, steps); }
Axis time_axis(Nanoseconds largest, int steps) { return time_axis_from({}, largest, steps); }

Axis count_axis(double largest, int steps) {
  return make_axis(Unit{"", 1}, 0, std::max(1.0, largest), steps);
}

Axis size_axis_from(Bytes smallest, Bytes largest, int steps) {
  const auto most = static_cast<double>(std::max<std::int64_t>(1, largest.count));
  return make_axis(unit_for(size_units, most), static_cast<double>(smallest.count), most, steps);
}

Axis time_axis_from(Nanoseconds smallest, Nanoseconds largest, int steps) {
  const auto most = static_cast<double>(std::max<std::int64_t>(1, largest.count()));
  return make_axis(unit_for(time_units, most), static_cast<double>(smallest.count()), most, steps);
}

}  // namespace tidemark
