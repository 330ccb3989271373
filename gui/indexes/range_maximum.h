// Where is the largest of these values between here and there? Answered in logarithmic time, so
// that zooming out over millions of events never hides the one that matters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tidemark::gui {

/// A tree of fan 16 over values that stand elsewhere: the index of the largest in each subtree.
/// `value(i)` is one of them, the same each time.
class MaximumTree {
 public:
  MaximumTree() = default;
  template <typename Value>
  MaximumTree(std::size_t size, Value value) : size_(size) {
    CHECK(size < UINT32_MAX);
    for (std::size_t below = size; below > fan; below = levels_.back().size()) {
      const std::size_t level = levels_.size();
      std::vector<std::uint32_t> entries((below + fan - 1) / fan);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        std::size_t best = candidate(level, i * fan);
        for (std::size_t k = i * fan + 1; k < std::min(below, (i + 1) * fan); ++k)
          if (beats(candidate(level, k), best, value)) best = candidate(level, k);
        entries[i] = static_cast<std::uint32_t>(best);
      }
      levels_.push_back(std::move(entries));
    }
  }

  /// Index of the first largest value in [begin, end), which must not be empty.
  template <typename Value>
  std::size_t largest_in(std::size_t begin, std::size_t end, Value value) const {
    CHECK(begin < end && end <= size_);
    std::size_t best = begin;
    const auto consider = [&](std::size_t level, std::size_t i) {
      if (const std::size_t other = candidate(level, i); beats(other, best, value)) best = other;
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

 private:
  static constexpr std::size_t fan = 16;  // 16 indices of 4 bytes are one cache line

  /// Index of the largest value under entry i of a level; level 0 is the values themselves.
  std::size_t candidate(std::size_t level, std::size_t i) const {
    return level == 0 ? i : levels_[level - 1][i];
  }
  template <typename Value>
  static bool beats(std::size_t a, std::size_t b, Value value) {
    return value(a) > value(b) || (value(a) == value(b) && a < b);
  }

  std::size_t size_ = 0;
  std::vector<std::vector<std::uint32_t>> levels_;  ///< each has a `fan`-th of the one below
};

/// With the values.
class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(std::vector<std::int64_t> values)
      : values_(std::move(values)), tree_(values_.size(), at()) {}

  std::size_t size() const { return values_.size(); }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }

  /// Index of the first largest value in [begin, end), which must not be empty.
  std::size_t largest_in(std::size_t begin, std::size_t end) const {
    return tree_.largest_in(begin, end, at());
  }

 private:
  struct At {
    const std::int64_t* values;
    std::int64_t operator()(std::size_t i) const { return values[i]; }
  };
  At at() const { return {values_.data()}; }

  std::vector<std::int64_t> values_;
  MaximumTree tree_;
};

}  // namespace tidemark::gui
