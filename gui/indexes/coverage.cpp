// Finds places by binary search, and sums from the last sum that is kept.
#include "gui/indexes/coverage.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark::gui {
namespace {

// Stretches between two sums: walking them costs less than looking up their memory.
constexpr std::size_t sum_stride = 64;

}  // namespace

void Coverage::reserve(std::size_t count) {
  begins_.reserve(count), ends_.reserve(count), sums_.reserve(count / sum_stride + 1);
}

void Coverage::add(std::int64_t begin, std::int64_t end) {
  // Without overlap the ends are sorted like the begins, which is what all searches rely on.
  CHECK(begin <= end && (ends_.empty() || ends_.back() <= begin));
  if (ends_.size() % sum_stride == 0) sums_.push_back(sum_);
  begins_.push_back(begin), ends_.push_back(end);
  sum_ += end - begin;
}

std::size_t Coverage::first_after(double place) const {
  const auto found = std::upper_bound(
      ends_.begin(), ends_.end(), place,
      [](double wanted, std::int64_t end) { return wanted < static_cast<double>(end); });
  return static_cast<std::size_t>(found - ends_.begin());
}

std::size_t Coverage::begins_before(std::int64_t place) const {
  return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), place) -
                                  begins_.begin());
}

std::int64_t Coverage::covered_before(std::int64_t place) const {
  const std::size_t next = begins_before(place);
  if (next == 0) return 0;
  const std::size_t last = next - 1;
  std::int64_t sum = sums_[last / sum_stride] + std::min(place, ends_[last]) - begins_[last];
  for (std::size_t i = last / sum_stride * sum_stride; i < last; ++i) sum += ends_[i] - begins_[i];
  return sum;
}

// Two searches, however many are in it. That is what lets a folded cell be as bright as it is busy.
std::int64_t Coverage::covered(std::int64_t begin, std::int64_t end) const {
  return begin < end ? covered_before(end) - covered_before(begin) : 0;
}

}  // namespace tidemark::gui
