// Pictures of steps and of comparisons, as SVG.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulator/recording/recording.h"
#include "simulator/report.h"

namespace tidemark {

/// Memory over time, stacked by category, above the streams. Every column shows the moment of its
/// most live bytes, so the peak is never lost.
std::string memory_svg(const Recording& recording);

/// Who is alive at the peak: all, by category, by block, by tensor; width is size.
std::string icicle_svg(const Recording& recording);

/// Memory against time, a point per strategy that applies, with the Pareto front. `capacity` is
/// marked.
std::string tradeoff_svg(std::span<const Report> rows, Bytes capacity, std::string_view title);

/// The largest batch that fits, for rows that know it.
std::string batches_svg(std::span<const Report> rows, std::string_view title);

/// Strategies that no other beats in both memory (allocated peak) and time of the step, fastest
/// first, as indices into rows.
std::vector<std::size_t> pareto_front(std::span<const Report> rows);

/// A line per strategy over the points of a sweep.
struct SweepCurve {
  std::string name;
  std::vector<double> values;  ///< by point; negative = none
};
enum class Quantity : std::uint8_t { Size, Rate };
std::string curves_svg(std::span<const SweepCurve> curves, std::span<const std::string> points,
                       Quantity quantity, double limit, std::string_view title);

}  // namespace tidemark
