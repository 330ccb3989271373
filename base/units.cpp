// Sizes and times as text of about three digits, and sizes read in binary or decimal units.
#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"

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

namespace {

struct TypedUnit {
  std::string_view name;  // in lower case
  std::int64_t size;
};

// KB, MB, … are decimal (IEC 80000-13). A letter alone is binary, as in GNU's tools.
constexpr std::array typed_units = {
    TypedUnit{"b", 1},
    TypedUnit{"k", 1 << 10},
    TypedUnit{"kb", 1'000},
    TypedUnit{"kib", 1 << 10},
    TypedUnit{"m", 1 << 20},
    TypedUnit{"mb", 1'000'000},
    TypedUnit{"mib", 1 << 20},
    TypedUnit{"g", 1 << 30},
    TypedUnit{"gb", 1'000'000'000},
    TypedUnit{"gib", 1 << 30},
    TypedUnit{"t", std::int64_t{1} << 40},
    TypedUnit{"tb", 1'000'000'000'000},
    TypedUnit{"tib", std::int64_t{1} << 40},
};

std::int64_t size_of_unit(std::string_view text) {
  std::string name;
  for (const char c : text) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const TypedUnit& unit : typed_units)
    if (unit.name == name) return unit.size;
  return 0;
}

// Whole numbers are exact beyond the 53 bits of a double.
std::optional<std::int64_t> product(std::string_view number, std::int64_t unit) {
  const char* const end = number.data() + number.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(number.data(), end, whole);
      error == std::errc() && at == end) {
    if (whole < 0 || whole > largest_size / unit) return {};
    return whole * unit;
  }
  double value = -1;
  const auto [at, error] = std::from_chars(number.data(), end, value);
  if (error != std::errc() || at != end || !(value >= 0)) return {};
  const double size = value * static_cast<double>(unit);
  if (!(size <= static_cast<double>(largest_size))) return {};
  return std::llround(size);
}

// Where the number ends: an e belongs to it, a unit's letters do not.
std::size_t length_of_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return static_cast<std::size_t>(end - text.data());
}

}  // namespace

Bytes parse_bytes(std::string_view text, std::string_view what) {
  const std::string_view number = text.substr(0, length_of_number(text));
  std::string_view unit = text.substr(number.size());
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (!number.empty() && unit.empty() && product(number, 1)) {
    if (product(number, 1) == 0) return {};  // nothing is nothing in any unit
    throw InputError(
        fmt::format("{0}: '{1}' has no unit (write for example {1}GiB, or {1}B for bytes)", what,
                    text.substr(0, 64)));
  }
  const std::int64_t scale = size_of_unit(unit);
  const auto size = scale == 0 ? std::nullopt : product(number, scale);
  if (!size)
    throw InputError(fmt::format("{}: '{}' is not a size (write for example 24GiB, 24GB or 512MiB)",
                                 what, text.substr(0, 64)));
  return {*size};
}

}  // namespace tidemark
