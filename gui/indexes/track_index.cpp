// Keeps begins, ends and prefix sums of lengths in order, and finds places by binary search.
#include "gui/indexes/track_index.h"

#include "base/error.h"

namespace tidemark::gui {

TrackIndex::TrackIndex(std::vector<Stretch> stretches) {
  // Runs of one stream come in order as a rule; sorting millions again would be a part of opening.
  if (!std::ranges::is_sorted(stretches, {}, &Stretch::begin))
    std::ranges::stable_sort(stretches, {}, &Stretch::begin);
  // Arrays of their own instead of structs: a search by time reads nothing but times.
  std::vector<std::int64_t> lengths;
  lengths.reserve(stretches.size());
  begins_.reserve(stretches.size()), ends_.reserve(stretches.size());
  items_.reserve(stretches.size()), covered_.reserve(stretches.size());
  std::int64_t covered = 0;
  for (const Stretch& stretch : stretches) {
    // Without overlap the ends are sorted like the begins, which is what all searches rely on.
    CHECK(stretch.begin <= stretch.end && (ends_.empty() || ends_.back() <= stretch.begin));
    begins_.push_back(stretch.begin), ends_.push_back(stretch.end);
    items_.push_back(stretch.item), covered_.push_back(covered);
    lengths.push_back(stretch.end - stretch.begin);
    covered += lengths.back();
  }
  lengths_ = RangeMaximum(std::move(lengths));
}

std::size_t TrackIndex::first_after(double place) const {
  const auto found = std::upper_bound(
      ends_.begin(), ends_.end(), place,
      [](double wanted, std::int64_t end) { return wanted < static_cast<double>(end); });
  return static_cast<std::size_t>(found - ends_.begin());
}

std::size_t TrackIndex::at(double place) const {
  const std::size_t i = first_after(place);
  return i < size() && static_cast<double>(begins_[i]) <= place ? i : size();
}

std::size_t TrackIndex::begins_before(std::int64_t place) const {
  return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), place) -
                                  begins_.begin());
}

// A prefix sum: how much of a range is busy costs two searches, however many runs are in it. That
// is what lets a folded cell be as bright as it is busy.
std::int64_t TrackIndex::covered_before(std::int64_t place) const {
  const auto next = static_cast<std::size_t>(
      std::upper_bound(begins_.begin(), begins_.end(), place) - begins_.begin());
  if (next == 0) return 0;
  return covered_[next - 1] + std::min(place, ends_[next - 1]) - begins_[next - 1];
}

std::int64_t TrackIndex::covered(std::int64_t begin, std::int64_t end) const {
  return begin < end ? covered_before(end) - covered_before(begin) : 0;
}

}  // namespace tidemark::gui
