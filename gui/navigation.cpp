// Clamps, zooms and pans ranges, and chooses ticks and their texts for times and bytes.
#include "gui/navigation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tidemark::gui {
namespace {

// Emptiness that is shown left and right of everything, as a share of it.
constexpr double margin = 0.02;

struct Unit {
  std::string_view name;
  double size;
};
constexpr std::array time_units = {Unit{"ns", 1}, Unit{"µs", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};
constexpr std::array byte_units = {Unit{"B", 1}, Unit{"KiB", 1024}, Unit{"MiB", 1048576},
                                   Unit{"GiB", 1073741824}, Unit{"TiB", 1099511627776}};

// In how many decimals can a step be told? All that it has, or three digits of a step that has no
// end, such as a KiB in GiB. By share: a microsecond is 1e-6 s, which is not nothing.
bool is_told(double step) {
  return step > 0.5 && (step >= 100 || std::abs(step - std::round(step)) <= 1e-6 * step);
}

// The largest unit in which the value is at least one, and the decimals that a step of the axis
// takes in it.
template <typename Units>
std::string in_units(double value, double step, const Units& units) {
  const Unit* unit = &units.front();
  for (const Unit& candidate : units)
    if (std::abs(value) >= candidate.size) unit = &candidate;
  int decimals = 0;
  // As many decimals as the step has, so that neighbouring labels differ and no digit is spare.
  for (double rest = step / unit->size; decimals < 9 && !is_told(rest); rest *= 10) ++decimals;
  return fmt::format("{:.{}f} {}", value / unit->size, decimals, unit->name);
}

Ticks ticks_of(Range range, double step) { return {std::ceil(range.begin / step) * step, step}; }

}  // namespace

Range whole(const Limits& limits) { return {-margin * limits.end, (1 + margin) * limits.end}; }

// Keeps the middle where it is if only the width must change.
Range clamped(Range range, const Limits& limits) {
  const Range all = whole(limits);
  const double span = std::clamp(range.span(), std::min(limits.narrowest, all.span()), all.span());
  const double centre = (range.begin + range.end) / 2;
  const double last = std::max(all.begin, all.end - span);  // rounding: never before the first
  const double begin = std::clamp(centre - span / 2, all.begin, last);
  return {begin, begin + span};
}

Range zoomed(Range range, double place, double factor, const Limits& limits) {
  const double narrowest = std::min(limits.narrowest, whole(limits).span());
  const double span = std::clamp(range.span() * factor, narrowest, whole(limits).span());
  const double share = (place - range.begin) / range.span();
  return clamped({place - share * span, place + (1 - share) * span}, limits);
}

Range panned(Range range, double share, const Limits& limits) {
  const double distance = share * range.span();
  return clamped({range.begin + distance, range.end + distance}, limits);
}

Range around(double begin, double end, const Limits& limits) {
  const double room = std::max(0.1 * (end - begin), limits.narrowest / 2);
  return clamped({begin - room, end + room}, limits);
}

Ticks decimal_ticks(Range range, double spacing) {
  double step = std::pow(10, std::floor(std::log10(std::max(spacing, 1e-9))));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if (step < spacing) step *= factor;
  return ticks_of(range, std::max(1.0, step));
}

Ticks binary_ticks(Range range, double spacing) {
  return ticks_of(range, std::max(1.0, std::exp2(std::ceil(std::log2(std::max(spacing, 1.0))))));
}

std::string tick_text(double nanoseconds, double step) {
  return nanoseconds == 0 ? "0" : in_units(nanoseconds, step, time_units);
}

std::string byte_tick_text(double bytes, double step) {
  return bytes == 0 ? "0" : in_units(bytes, step, byte_units);
}

}  // namespace tidemark::gui
