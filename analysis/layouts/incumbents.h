// What the fastest layouts and the front of time and memory are, while they are being found.
#pragma once

#include <algorithm>
#include <vector>

#include "analysis/layouts/layout_search.h"

namespace tidemark {

class Incumbents {
 public:
  explicit Incumbents(std::size_t top) : top_(top) {}

  void add(const LayoutNumbers& numbers) {
    if (!numbers.fits) return;
    const auto at = std::ranges::upper_bound(fastest_, numbers.step);
    fastest_.insert(at, numbers.step);
    if (fastest_.size() > top_) fastest_.pop_back();
    if (is_beaten(numbers.step, numbers.allocated)) return;
    std::erase_if(front_, [&](const Point& point) {
      return point.step >= numbers.step && point.allocated >= numbers.allocated;
    });
    front_.push_back({numbers.step, numbers.allocated});
  }

  // No layout with these bounds is in the result, ties included.
  bool cuts(const LayoutBounds& bounds) const {
    return fastest_.size() == top_ && bounds.step > fastest_.back() &&
           is_beaten(bounds.step, bounds.allocated);
  }

  // Nor is it if nothing is known of those that take as long.
  bool faster_ones_cut(const LayoutBounds& bounds) const {
    return fastest_.size() == top_ && bounds.step > fastest_.back() &&
           std::ranges::any_of(front_, [&](const Point& point) {
             return point.step < bounds.step && point.allocated <= bounds.allocated;
           });
  }

 private:
  struct Point {
    Nanoseconds step;
    Bytes allocated;
  };

  bool is_beaten(Nanoseconds step, Bytes allocated) const {
    return std::ranges::any_of(front_, [&](const Point& point) {
      return point.step <= step && point.allocated <= allocated &&
             (point.step < step || point.allocated < allocated);
    });
  }

  const std::size_t top_;
  std::vector<Nanoseconds> fastest_;  ///< in order
  std::vector<Point> front_;
};

}  // namespace tidemark
