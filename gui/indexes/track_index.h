// Things in a row that do not overlap, such as the runs of a stream or the buffers of an arena,
// found and folded by pixel: drawing costs what is visible, not what is there.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "gui/indexes/range_maximum.h"

namespace tidemark::gui {

/// What a view shows of an axis; the unit is nanoseconds or bytes.
struct Range {
  double begin = 0, end = 1;

  double span() const { return end - begin; }
  bool contains(double place) const { return place >= begin && place <= end; }
  bool operator==(const Range&) const = default;
};

struct Stretch {
  std::int64_t begin, end;
  std::uint32_t item;  ///< what it is a stretch of
};

/// Positions [first, last) of an index that are drawn as one.
struct Cell {
  std::size_t first, last;

  std::size_t count() const { return last - first; }
  bool is_folded() const { return count() > 1; }
};

class TrackIndex {
 public:
  TrackIndex() = default;
  /// The stretches may touch, but not overlap; their order does not matter.
  explicit TrackIndex(std::vector<Stretch> stretches);

  std::size_t size() const { return ends_.size(); }
  std::int64_t begin_of(std::size_t position) const { return begins_[position]; }
  std::int64_t end_of(std::size_t position) const { return ends_[position]; }
  std::uint32_t item_of(std::size_t position) const { return items_[position]; }

  /// First position that ends after the place; size() if there is none.
  std::size_t first_after(double place) const;
  /// The stretch that covers the place, or size().
  std::size_t at(double place) const;
  /// How many begin before the place.
  std::size_t begins_before(std::int64_t place) const;
  /// The longest of a cell.
  std::size_t longest_of(Cell cell) const { return lengths_.largest_in(cell.first, cell.last); }
  /// How much of [begin, end) is covered.
  std::int64_t covered(std::int64_t begin, std::int64_t end) const;

  /// Calls visit(Cell) from left to right for all that the range shows. What is narrower than
  /// `cell` is folded with its narrow neighbours of the same multiple of `cell`, so that a picture
  /// stays as it is while it is moved. Costs O(log n) for each cell.
  template <typename Visit>
  void visit(Range range, double cell, Visit visit) const {
    for (std::size_t i = first_after(range.begin); i < size();) {
      const auto begin = static_cast<double>(begins_[i]);
      if (begin >= range.end) return;
      std::size_t next = i + 1;
      if (static_cast<double>(ends_[i]) - begin < cell)
        next = std::max(next, first_after((std::floor(begin / cell) + 1) * cell));
      visit(Cell{i, next});
      i = next;
    }
  }

 private:
  std::int64_t covered_before(std::int64_t place) const;

  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::uint32_t> items_;
  std::vector<std::int64_t> covered_;  ///< by all before this one
  RangeMaximum lengths_;
};

}  // namespace tidemark::gui
