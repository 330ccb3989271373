// Moving about on an axis: pure functions on ranges, with no window and no mouse.
#pragma once

#include <string>

#include "gui/indexes/track_index.h"

namespace tidemark::gui {

/// Where a range may go: zooming in stops at `narrowest`, and no more than a margin of emptiness
/// is shown beyond [0, end].
struct Limits {
  double end = 1;
  double narrowest = 20;  ///< ns; kernels take a hundred times that
};

Range whole(const Limits& limits);
Range clamped(Range range, const Limits& limits);

/// `factor` below one zooms in; what is at `place` stays there.
Range zoomed(Range range, double place, double factor, const Limits& limits);
/// By a share of what is visible.
Range panned(Range range, double share, const Limits& limits);
/// Shows [begin, end) with some room on both sides.
Range around(double begin, double end, const Limits& limits);

/// Round places for labels, at least `spacing` apart.
struct Ticks {
  double first = 0, step = 1;
};
/// Steps of 1, 2 or 5 times a power of ten.
Ticks decimal_ticks(Range range, double spacing);
/// Steps that are powers of two.
Ticks binary_ticks(Range range, double spacing);

/// "12.35 ms": a place on a time axis, with the digits that tell neighbouring ticks apart.
std::string tick_text(double nanoseconds, double step);
/// "1.5 GiB": likewise for bytes.
std::string byte_tick_text(double bytes, double step);

}  // namespace tidemark::gui
