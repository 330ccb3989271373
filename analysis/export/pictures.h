// Pictures of steps and of comparisons, as SVG: each as wide as a page or as a phone, and on axes
// that it may share with others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/export/extent.h"
#include "analysis/recording/recording.h"
#include "analysis/report.h"

namespace tidemark::exports {

/// Pixels. Text has the same size in both.
inline constexpr double page_width = 960, phone_width = 360;

/// How far the axes of pictures of steps go.
struct StepExtent {
  Bytes memory{};
  Nanoseconds time{};
};
StepExtent extent_of(std::span<const Recording> recordings);

/// Memory over time, stacked by category, above the streams. Every column shows the moment of its
/// most live bytes, so the peak is never lost.
std::string memory_svg(const Recording& recording, const StepExtent& extent,
                       double width = page_width);
std::string memory_svg(const Recording& recording);

/// Who is alive at the peak: all, by category, by block, by tensor; width is size.
std::string icicle_svg(const Recording& recording, double width = page_width);

/// Strategies of one comparison, and the memory that tensors may have.
struct Tradeoff {
  std::span<const Report> rows;
  Bytes budget;
  std::string title;
};

/// How far the axes of trade-offs go.
struct TradeoffExtent {
  Extent memory;        ///< bytes
  double slowdown = 0;  ///< per cent more than the fastest strategy of the same comparison

  void include(std::span<const Report> rows);
};

/// Memory (allocated peak) against time compared with the fastest, a point per strategy that
/// applies, with the Pareto front and the budget.
std::string tradeoff_svg(const Tradeoff& tradeoff, const TradeoffExtent& extent,
                         double width = page_width);
std::string tradeoff_svg(const Tradeoff& tradeoff, double width = page_width);

/// Fronts of plans: what budgets cost, a line of points for each class of plans.
struct FrontsPicture {
  struct Point {
    Bytes budget;
    Nanoseconds step{};
    std::string tip;
  };
  struct Front {
    std::string name;
    std::vector<Point> points;  ///< in rising budgets
  };
  std::string title, memory;  ///< memory: what the bytes are, "allocated"
  std::vector<Front> fronts;
  Nanoseconds vanilla{};  ///< times are told as more than this
  Bytes limit;            ///< 0 = none
};
std::string fronts_svg(const FrontsPicture& picture, double width = page_width);

/// The largest batch that fits, for rows that know it.
std::string batches_svg(std::span<const Report> rows, std::string_view title,
                        double width = page_width);

/// Strategies that no other beats in both memory (allocated peak) and time of the step, fastest
/// first, as indices into rows.
std::vector<std::size_t> pareto_front(std::span<const Report> rows);

/// A line per strategy over the points of a sweep.
struct SweepCurve {
  std::string name;
  std::vector<double> values;  ///< by point; negative = none
};
enum class Quantity : std::uint8_t { Size, Rate };
struct SweepPicture {
  std::string title = {}, dimension = {};  ///< dimension: what the points are, "batch"
  Quantity quantity = Quantity::Size;
  std::vector<SweepCurve> curves = {};
  std::vector<std::string> points = {};
  double limit = 0;                        ///< 0 = none
  std::string shown = "allocated memory";  ///< what the values are
};
Extent extent_of(const SweepPicture& picture);
std::string curves_svg(const SweepPicture& picture, const Extent& extent,
                       double width = page_width);

}  // namespace tidemark::exports
