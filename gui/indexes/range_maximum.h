// Where is the largest of these values between here and there? Answered in logarithmic time, so
// that zooming out over millions of events never hides the one that matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::gui {

class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(std::vector<std::int64_t> values);

  std::size_t size() const { return values_.size(); }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }

  /// Index of the first largest value in [begin, end), which must not be empty.
  std::size_t largest_in(std::size_t begin, std::size_t end) const;

 private:
  /// Index of the largest value under entry i of a level; level 0 is the values themselves.
  std::size_t candidate(std::size_t level, std::size_t i) const {
    return level == 0 ? i : levels_[level - 1][i];
  }
  bool beats(std::size_t a, std::size_t b) const {
    return values_[a] > values_[b] || (values_[a] == values_[b] && a < b);
  }

  std::vector<std::int64_t> values_;
  std::vector<std::vector<std::uint32_t>> levels_;  ///< each has a `fan`-th of the one below
};

}  // namespace tidemark::gui
