// A tree of fan 16 over the values holds the index of the largest in each subtree.
#include "gui/indexes/range_maximum.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark::gui {
namespace {

// 16 indices of 4 bytes are one cache line.
constexpr std::size_t fan = 16;

}  // namespace

RangeMaximum::RangeMaximum(std::vector<std::int64_t> values) : values_(std::move(values)) {
  CHECK(values_.size() < UINT32_MAX);
  for (std::size_t below = values_.size(); below > fan; below = levels_.back().size()) {
    const std::size_t level = levels_.size();
    std::vector<std::uint32_t> entries((below + fan - 1) / fan);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::size_t best = candidate(level, i * fan);
      for (std::size_t k = i * fan + 1; k < std::min(below, (i + 1) * fan); ++k)
        if (beats(candidate(level, k), best)) best = candidate(level, k);
      entries[i] = static_cast<std::uint32_t>(best);
    }
    levels_.push_back(std::move(entries));
  }
}

std::size_t RangeMaximum::largest_in(std::size_t begin, std::size_t end) const {
  CHECK(begin < end && end <= values_.size());
  std::size_t best = begin;
  const auto consider = [&](std::size_t level, std::size_t i) {
    if (const std::size_t other = candidate(level, i); beats(other, best)) best = other;
  };
  // The ragged ends of a level are looked at one by one; what lies between them belongs to whole
  // entries of the level above.
  for (std::size_t level = 0; begin < end; ++level, begin /= fan, end /= fan) {
    const bool is_top = level == levels_.size();
    while (begin < end && (is_top || begin % fan != 0)) consider(level, begin++);
    while (begin < end && end % fan != 0) consider(level, --end);
  }
  return best;
}

}  // namespace tidemark::gui
