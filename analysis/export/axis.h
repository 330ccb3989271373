// Axes with round numbers, linear or logarithmic: sizes in one binary unit, times in one decimal
// unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/export/extent.h"
#include "base/units.h"

namespace tidemark::exports {

enum class Scale : std::uint8_t { Linear, Log };

/// Linear ones go from 0 to the last tick at or above the largest value.
struct Axis {
  struct Tick {
    double value;  ///< in bytes, nanoseconds, …
    std::string text;
  };
  std::string unit;
  std::vector<Tick> ticks;
  double begin = 0, end = 1;
  Scale scale = Scale::Linear;

  /// Where a value lies between begin (0) and end (1).
  double place(double value) const;
};

Axis size_axis(Bytes largest, int steps);
Axis time_axis(Nanoseconds largest, int steps);
Axis count_axis(double largest, int steps);

/// For pictures that share an axis: linear, unless the smallest would lie on the ground because the
/// largest is more than 8 times as large. A logarithmic axis goes by powers of two for sizes, by 1,
/// 2, 5, 10 for counts.
Axis shared_size_axis(const Extent& range, int steps);
Axis shared_count_axis(const Extent& range, int steps);

}  // namespace tidemark::exports
