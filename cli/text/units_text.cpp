// Picks the largest unit that keeps digits, and writes sizes, times, counts, FLOP and changes.
#include "cli/text/units_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tidemark::cli {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr double kib = 1024;
constexpr std::array size_units = {Unit{"B", 1}, Unit{"KiB", kib}, Unit{"MiB", kib* kib},
                                   Unit{"GiB", kib* kib* kib}, Unit{"TiB", kib* kib* kib* kib}};
constexpr std::array time_units = {Unit{"ns", 1}, Unit{"µs", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};

// The largest unit in which the value is ten or more: small ones of the column keep their digits.
template <std::size_t N>
Unit unit_of(double value, const std::array<Unit, N>& units) {
  Unit best = units[0];
  for (const Unit& unit : units)
    if (value >= 10 * unit.size) best = unit;
  return best;
}

int decimals_of(double scaled, double unit) {
  if (unit == 1) return 0;
  return scaled >= 1000 ? 0 : scaled >= 100 ? 1 : 2;
}

}  // namespace

SizeUnit::SizeUnit(Bytes largest) {
  const double value = static_cast<double>(largest.count);
  const Unit unit = unit_of(value, size_units);
  name_ = unit.name, size_ = unit.size;
  decimals_ = decimals_of(value / size_, size_);
}

std::string SizeUnit::operator()(Bytes bytes) const {
  return fmt::format("{:.{}f}", static_cast<double>(bytes.count) / size_, decimals_);
}

std::string SizeUnit::with_unit(Bytes bytes) const {
  return fmt::format("{} {}", (*this)(bytes), name_);
}

TimeUnit::TimeUnit(Nanoseconds largest) {
  const double value = static_cast<double>(largest.count());
  const Unit unit = unit_of(value, time_units);
  name_ = unit.name, size_ = unit.size;
  decimals_ = decimals_of(value / size_, size_);
}

std::string TimeUnit::operator()(Nanoseconds time) const {
  const double value = static_cast<double>(time.count()) / size_;
  const std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals_);
  const bool is_zero = digits.find_first_not_of("0.") == digits.npos;
  return value < 0 && !is_zero ? "−" + digits : digits;
}

std::string change_text(double ratio) {
  const std::string digits = fmt::format("{:.1f}", std::abs(ratio - 1) * 100);
  if (digits == "0.0") return "0.0 %";
  return fmt::format("{}{} %", ratio > 1 ? "+" : "−", digits);
}

std::string flop_text(double flops) {
  constexpr std::array units = {Unit{"FLOP", 1},    Unit{"kFLOP", 1e3},  Unit{"MFLOP", 1e6},
                                Unit{"GFLOP", 1e9}, Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}};
  const Unit unit = unit_of(flops, units);
  return fmt::format("{:.{}f} {}", flops / unit.size, decimals_of(flops / unit.size, unit.size),
                     unit.name);
}

std::string count_text(std::int64_t count) {
  constexpr std::array<std::pair<double, const char*>, 3> scales = {
      {{1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
  const double value = static_cast<double>(count);
  constexpr double rounded_up = 0.9995;  // of a scale, or of its 100: less prints four digits
  for (const auto& [scale, suffix] : scales)
    if (value >= rounded_up * scale)
      return fmt::format("{:.{}f}{}", value / scale, value / scale >= 100 * rounded_up ? 0 : 1,
                         suffix);
  return fmt::format("{}", count);
}

}  // namespace tidemark::cli
