#include "traces/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "traces/error.h"

namespace tidemark {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

std::string in_units(double value, const Unit* unit) {
  const double scaled = value / unit->size;
  const int decimals = std::abs(scaled) >= 99.95 ? 0 : std::abs(scaled) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", scaled, decimals, unit->name);
}

constexpr std::array byte_units = {Unit{"B", 1}, Unit{"KiB", 1024.0}, Unit{"MiB", 1048576.0},
                                   Unit{"GiB", 1073741824.0}, Unit{"TiB", 1099511627776.0}};
constexpr std::array time_units = {Unit{"ns", 1}, Unit{"µs", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};

template <std::size_t N>
const Unit* largest_unit(double value, const std::array<Unit, N>& units) {
  const Unit* unit = units.data();
  while (unit + 1 != units.data() + N && std::abs(value) >= unit[1].size) ++unit;
  return unit;
}

}  // namespace

std::string to_text(Bytes bytes) {
  if (std::abs(bytes.count) < 1024) return fmt::format("{} B", bytes.count);
  const double value = static_cast<double>(bytes.count);
  return in_units(value, largest_unit(value, byte_units));
}

std::string to_text(Nanoseconds time) {
  if (std::abs(time.count()) < 1000) return fmt::format("{} ns", time.count());
  const double value = static_cast<double>(time.count());
  return in_units(value, largest_unit(value, time_units));
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double scale = unit.empty() ? 1 : 0;
  for (const Unit& known : byte_units)
    if (unit == known.name) scale = known.size;
  if (error != std::errc() || scale == 0 || !(value >= 0) ||
      value * scale > static_cast<double>(largest_size))
    throw InputError(fmt::format("{}: '{}' is not a size (write for example 24GiB or 512MiB)", what,
                                 text.substr(0, 64)));
  return {static_cast<std::int64_t>(std::llround(value * scale))};
}

}  // namespace tidemark
