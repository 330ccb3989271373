// Interpolates between knots, and ties phases of the same names to each other.
#include "gui/time_map.h"

#include "gui/opened.h"

namespace tidemark::gui {

double TimeMap::moved(double place, double Knot::*from, double Knot::*to) const {
  const auto next = std::ranges::upper_bound(knots_, place, {}, from);
  const Knot& before = next == knots_.begin() ? *next : *std::prev(next);
  const double beyond = place - before.*from;
  if (next == knots_.begin() || next == knots_.end()) return before.*to + beyond;
  return before.*to + beyond * ((*next).*to - before.*to) / ((*next).*from - before.*from);
}

TimeMap phase_by_phase(const Opened& one, const Opened& axis) {
  std::vector<TimeMap::Knot> knots{{0, 0}};
  const bool are_alike =
      std::ranges::equal(one.phases(), axis.phases(), {}, &Phase::name, &Phase::name);
  for (std::size_t i = 0; are_alike && i + 1 < one.phases().size(); ++i)
    knots.push_back({one.phases()[i].range.end, axis.phases()[i].range.end});
  knots.push_back({one.end(), axis.end()});
  return TimeMap(std::move(knots));
}

}  // namespace tidemark::gui
