// Sorts stretches that come in any order.
#include "gui/indexes/track_index.h"

namespace tidemark::gui {

TrackIndex::TrackIndex(std::vector<Stretch> stretches) {
  // Runs of one stream come in order as a rule; sorting millions again would be a part of opening.
  if (!std::ranges::is_sorted(stretches, {}, &Stretch::begin))
    std::ranges::stable_sort(stretches, {}, &Stretch::begin);
  stretches_.reserve(stretches.size()), items_.reserve(stretches.size());
  for (const Stretch& stretch : stretches) {
    stretches_.add(stretch.begin, stretch.end);
    items_.push_back(stretch.item);
  }
  longest_ = MaximumTree(size(), length());
}

std::size_t TrackIndex::at(double place) const {
  const std::size_t i = first_after(place);
  return i < size() && static_cast<double>(begin_of(i)) <= place ? i : size();
}

}  // namespace tidemark::gui
