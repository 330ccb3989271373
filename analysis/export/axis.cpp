// Ticks at round numbers, and where values lie between them.
#include "analysis/export/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/export/svg.h"

namespace tidemark::exports {
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

Axis linear_axis(const Unit& unit, double largest, int steps) {
  const double high = std::max(largest / unit.size, 1e-9), step = nice_step(high, steps);
  const double last = std::max(1.0, std::ceil(high / step - 1e-9));
  Axis axis{std::string(unit.name), {}, 0, last * step * unit.size};
  for (double i = 0; i <= last; ++i)
    axis.ticks.push_back({i * step * unit.size, fmt::format("{:.6g}", i * step)});
  return axis;
}

constexpr double most_on_linear = 8;

bool is_wide(const Extent& range) {
  return range.smallest > 0 && range.largest > most_on_linear * range.smallest;
}

// `ticks` in units, from at or below the smallest value to at or above the largest.
Axis log_axis(const Unit& unit, const std::vector<double>& ticks) {
  Axis axis{
      std::string(unit.name), {}, ticks.front() * unit.size, ticks.back() * unit.size, Scale::Log};
  for (const double tick : ticks)
    axis.ticks.push_back({tick * unit.size, fmt::format("{:.6g}", tick)});
  return axis;
}

std::vector<double> powers_of_two(double smallest, double largest) {
  std::vector<double> ticks = {std::exp2(std::floor(std::log2(smallest)))};
  while (ticks.back() < largest) ticks.push_back(2 * ticks.back());
  return ticks;
}

std::vector<double> one_two_five(double smallest, double largest) {
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(smallest)));; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * power;
      if (!ticks.empty() && tick <= smallest) ticks.clear();
      ticks.push_back(tick);
      if (tick >= largest) return ticks;
    }
}

}  // namespace

double Axis::place(double value) const {
  if (scale == Scale::Linear) return (value - begin) / (end - begin);
  return std::log(std::max(value, begin) / begin) / std::log(end / begin);
}

Axis size_axis(Bytes largest, int steps) {
  const auto most = static_cast<double>(std::max<std::int64_t>(1, largest.count));
  return linear_axis(unit_for(size_units, most), most, steps);
}

Axis time_axis(Nanoseconds largest, int steps) {
  const auto most = static_cast<double>(std::max<std::int64_t>(1, largest.count()));
  return linear_axis(unit_for(time_units, most), most, steps);
}

Axis count_axis(double largest, int steps) {
  return linear_axis(Unit{"", 1}, std::max(1.0, largest), steps);
}

Axis shared_size_axis(const Extent& range, int steps) {
  const Unit unit = unit_for(size_units, std::max(1.0, range.largest));
  if (!is_wide(range)) return linear_axis(unit, std::max(1.0, range.largest), steps);
  return log_axis(unit, powers_of_two(range.smallest / unit.size, range.largest / unit.size));
}

Axis shared_count_axis(const Extent& range, int steps) {
  if (!is_wide(range)) return count_axis(range.largest, steps);
  return log_axis(Unit{"", 1}, one_two_five(range.smallest, range.largest));
}

}  // namespace tidemark::exports
