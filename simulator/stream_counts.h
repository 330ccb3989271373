// Counts per stream, for any number of streams: vector clocks, and how often each stream waited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {

/// Rows of one count per stream in one flat array: there is a row per buffer, and an array of small
/// arrays would cost each of them a pointer and a length.
class StreamCounts {
 public:
  explicit StreamCounts(std::size_t streams, std::size_t rows = 0)
      : streams_(streams), rows_(rows), counts_(streams * rows) {}

  std::size_t rows() const { return rows_; }
  std::span<std::uint32_t> operator[](std::size_t row) {
    return {counts_.data() + row * streams_, streams_};
  }
  std::span<const std::uint32_t> operator[](std::size_t row) const {
    return {counts_.data() + row * streams_, streams_};
  }
  void reserve(std::size_t rows) { counts_.reserve(rows * streams_); }
  /// New rows are zero.
  void resize(std::size_t rows) { rows_ = rows, counts_.resize(rows * streams_); }
  /// `counts` must not be a row of this table. Returns the new row.
  std::span<std::uint32_t> append(std::span<const std::uint32_t> counts) {
    counts_.insert(counts_.end(), counts.begin(), counts.end());
    return (*this)[rows_++];
  }

 private:
  std::size_t streams_, rows_;
  std::vector<std::uint32_t> counts_;
};

/// Is no count lower than the other's?
inline bool covers(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> others) {
  for (std::size_t s = 0; s < others.size(); ++s)
    if (counts[s] < others[s]) return false;
  return true;
}

/// Raises each count to the other's.
inline void raise_to(std::span<std::uint32_t> counts, std::span<const std::uint32_t> others) {
  for (std::size_t s = 0; s < others.size(); ++s) counts[s] = std::max(counts[s], others[s]);
}

inline void copy_to(std::span<std::uint32_t> counts, std::span<const std::uint32_t> others) {
  std::ranges::copy(others, counts.begin());
}

}  // namespace tidemark
