// Where the moments of one step are on the time axis of another: phase by phase, so that what takes
// longer in one of them is as wide, and begins where it begins.
#pragma once

#include <algorithm>
#include <vector>

#include "gui/indexes/track_index.h"

namespace tidemark::gui {

class Opened;

/// Goes up from knot to knot in straight lines, and on at its own pace before the first and after
/// the last.
class TimeMap {
 public:
  /// A moment of the step, and where it is on the axis.
  struct Knot {
    double own, axis;
  };

  /// Every moment is where it is.
  TimeMap() : TimeMap({{0, 0}}) {}
  /// Both go up.
  explicit TimeMap(std::vector<Knot> knots) : knots_(std::move(knots)) {}

  double to_axis(double own) const { return moved(own, &Knot::own, &Knot::axis); }
  double to_own(double axis) const { return moved(axis, &Knot::axis, &Knot::own); }

  /// Calls visit(part, pace) for the parts of the step that are in `visible` of the axis, each as
  /// long as `pace` times what it takes of the axis.
  template <typename Visit>
  void visit(Range visible, Visit visit) const {
    double begin = visible.begin;
    for (std::size_t next = 0; next <= knots_.size() && begin < visible.end; ++next) {
      const double end =
          next < knots_.size() ? std::min(knots_[next].axis, visible.end) : visible.end;
      if (end <= begin) continue;
      const Range part{to_own(begin), to_own(end)};
      visit(part, part.span() / (end - begin));
      begin = end;
    }
  }

 private:
  double moved(double place, double Knot::*from, double Knot::*to) const;

  std::vector<Knot> knots_;
};

/// Puts each phase of `one` where `axis` has it, step by step for as many steps as both have; the
/// whole of one where the whole of the other is, if their first steps do not have the same phases.
TimeMap phase_by_phase(const Opened& one, const Opened& axis);

}  // namespace tidemark::gui
