// Interpolates between knots, and ties phases of the same names to each other.
#include "gui/time_map.h"

#include "gui/opened.h"

namespace tidemark::gui {
namespace {

// The longest run of whole steps with which both begin: how many phases it has.
std::size_t phases_alike(const std::vector<Phase>& one, const std::vector<Phase>& other) {
  std::size_t alike = 0;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
    if (one[i].name != other[i].name || one[i].step != other[i].step) break;
    const auto ends_step = [&](const std::vector<Phase>& phases) {
      return i + 1 == phases.size() || phases[i + 1].step != phases[i].step;
    };
    if (ends_step(one) != ends_step(other)) break;
    if (ends_step(one)) alike = i + 1;
  }
  return alike;
}

}  // namespace

double TimeMap::moved(double place, double Knot::*from, double Knot::*to) const {
  const auto next = std::ranges::upper_bound(knots_, place, {}, from);
  const Knot& before = next == knots_.begin() ? *next : *std::prev(next);
  const double beyond = place - before.*from;
  if (next == knots_.begin() || next == knots_.end()) return before.*to + beyond;
  return before.*to + beyond * ((*next).*to - before.*to) / ((*next).*from - before.*from);
}

TimeMap phase_by_phase(const Opened& one, const Opened& axis) {
  std::vector<TimeMap::Knot> knots{{0, 0}};
  const std::size_t alike = phases_alike(one.phases(), axis.phases());
  for (std::size_t i = 0; i < alike; ++i)
    knots.push_back({one.phases()[i].range.end, axis.phases()[i].range.end});
  if (alike == 0) knots.push_back({one.end(), axis.end()});
  return TimeMap(std::move(knots));
}

}  // namespace tidemark::gui
