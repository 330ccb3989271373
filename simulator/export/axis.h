// Axes with round numbers: sizes in one binary unit, times in one decimal unit.
#pragma once

#include <string>
#include <vector>

#include "traces/units.h"

namespace tidemark {

/// From 0 (or `from`) to the last tick at or above the largest value.
struct Axis {
  struct Tick {
    double value;  ///< in bytes, nanoseconds, …
    std::string text;
  };
  std::string unit;
  std::vector<Tick> ticks;
  double begin = 0, end = 1;

  /// Where a value lies between begin (0) and end (1).
  double place(double value) const { return (value - begin) / (end - begin); }
};

Axis size_axis(Bytes largest, int steps);
Axis time_axis(Nanoseconds largest, int steps);
Axis count_axis(double largest, int steps);

/// The same, but only from the last tick at or below the smallest value.
Axis size_axis_from(Bytes smallest, Bytes largest, int steps);
Axis time_axis_from(Nanoseconds smallest, Nanoseconds largest, int steps);

}  // namespace tidemark
