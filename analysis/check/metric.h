// What a check compares, one number each, and by how much it may differ.
#pragma once

#include <array>
#include <optional>

#include "base/names.h"
#include "base/units.h"

namespace tidemark::regression {

enum class Metric : std::uint8_t { Live, Planned, Allocated, Reserved, Step };

struct MetricRow {
  Metric value;
  std::string_view name;      ///< in tidemark.json
  std::string_view measured;  ///< in the result of a replay
  std::string_view unit;      ///< of the integer: "B" or "ns"
};

inline constexpr std::array metrics = {
    MetricRow{Metric::Live, "live", "live_peak_bytes", "B"},
    MetricRow{Metric::Planned, "planned", "planned_bytes", "B"},
    MetricRow{Metric::Allocated, "allocated", "allocated_peak_bytes", "B"},
    MetricRow{Metric::Reserved, "reserved", "reserved_peak_bytes", "B"},
    MetricRow{Metric::Step, "step", "step_ns", "ns"}};
static_assert(is_in_order(metrics));

constexpr std::size_t index(Metric metric) { return static_cast<std::size_t>(metric); }
constexpr const MetricRow& row_of(Metric metric) { return metrics[index(metric)]; }

/// By metric.
template <typename T>
using PerMetric = std::array<T, metrics.size()>;

/// Bytes or nanoseconds; unset where nothing is known.
using Values = PerMetric<std::optional<std::int64_t>>;

/// How far a number may be from the expected one, in either direction: an amount, or a share of
/// the expected number. Whole numbers, so that the limit is the same on every machine.
struct Tolerance {
  std::int64_t amount = 0;
  std::int64_t parts_per_million = 0;

  bool operator==(const Tolerance&) const = default;
};

constexpr std::int64_t million = 1'000'000;

/// "5%" or "0.25 %" in parts per million; nothing if it is no such text.
std::optional<std::int64_t> parse_percent(std::string_view text);

/// The share of `whole`, rounded down. Exact: no product leaves 64 bits.
constexpr std::int64_t share_of(std::int64_t whole, std::int64_t parts_per_million) {
  return whole / million * parts_per_million + whole % million * parts_per_million / million;
}

/// What the tolerance allows around `expected`.
constexpr std::int64_t allowed(const Tolerance& tolerance, std::int64_t expected) {
  return tolerance.amount + share_of(expected, tolerance.parts_per_million);
}

/// "2.1 GiB", "3.20 ms".
std::string to_text(Metric metric, std::int64_t value);
/// "+512 B", "−3.20 ms", "0 B".
std::string change_text(Metric metric, std::int64_t change);
/// "+3.05 %" of `whole`; "" of nothing.
std::string percent_text(std::int64_t whole, std::int64_t change);
/// "0 B", "5 %", "1.00 MiB".
std::string to_text(Metric metric, const Tolerance& tolerance);

}  // namespace tidemark::regression
