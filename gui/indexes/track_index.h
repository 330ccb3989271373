// Things in a row that do not overlap, such as the runs of a stream or the buffers of an arena,
// found and folded by pixel: drawing costs what is visible, not what is there.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "gui/indexes/coverage.h"
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

/// 20 bytes for each stretch.
class TrackIndex {
 public:
  TrackIndex() = default;
  /// The stretches may touch, but not overlap; their order does not matter.
  explicit TrackIndex(std::vector<Stretch> stretches);
  /// Of items that are in order already: `stretch_of(item)` says where each is.
  template <typename StretchOf>
  TrackIndex(std::vector<std::uint32_t> items, StretchOf stretch_of) : items_(std::move(items)) {
    stretches_.reserve(items_.size());
    for (const std::uint32_t item : items_) {
      const Stretch stretch = stretch_of(item);
      stretches_.add(stretch.begin, stretch.end);
    }
    longest_ = MaximumTree(size(), length());
  }

  std::size_t size() const { return stretches_.size(); }
  std::int64_t begin_of(std::size_t position) const { return stretches_.begin_of(position); }
  std::int64_t end_of(std::size_t position) const { return stretches_.end_of(position); }
  std::uint32_t item_of(std::size_t position) const { return items_[position]; }

  /// First position that ends after the place; size() if there is none.
  std::size_t first_after(double place) const { return stretches_.first_after(place); }
  /// The stretch that covers the place, or size().
  std::size_t at(double place) const;
  /// How many begin before the place.
  std::size_t begins_before(std::int64_t place) const { return stretches_.begins_before(place); }
  /// The longest of a cell.
  std::size_t longest_of(Cell cell) const {
    return longest_.largest_in(cell.first, cell.last, length());
  }
  /// How much of [begin, end) is covered.
  std::int64_t covered(std::int64_t begin, std::int64_t end) const {
    return stretches_.covered(begin, end);
  }

  /// Calls visit(Cell) from left to right for all that the range shows. What is narrower than
  /// `cell` is folded with its narrow neighbours of the same multiple of `cell`, so that a picture
  /// stays as it is while it is moved. Costs O(log n) for each cell.
  template <typename Visit>
  void visit(Range range, double cell, Visit visit) const {
    for (std::size_t i = first_after(range.begin); i < size();) {
      const auto begin = static_cast<double>(begin_of(i));
      if (begin >= range.end) return;
      std::size_t next = i + 1;
      if (static_cast<double>(end_of(i)) - begin < cell)
        next = std::max(next, first_after((std::floor(begin / cell) + 1) * cell));
      visit(Cell{i, next});
      i = next;
    }
  }

 private:
  struct Length {
    const Coverage& of;
    std::int64_t operator()(std::size_t i) const { return of.end_of(i) - of.begin_of(i); }
  };
  Length length() const { return {stretches_}; }

  Coverage stretches_;
  std::vector<std::uint32_t> items_;
  MaximumTree longest_;
};

}  // namespace tidemark::gui
