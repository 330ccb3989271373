// Stretches one behind the other, and how much of any range they cover: 16 bytes for each, and a
// sum for every 64th.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::gui {

class Coverage {
 public:
  void reserve(std::size_t count);
  /// Behind all that are there; it may touch the last one.
  void add(std::int64_t begin, std::int64_t end);

  std::size_t size() const { return ends_.size(); }
  std::int64_t begin_of(std::size_t position) const { return begins_[position]; }
  std::int64_t end_of(std::size_t position) const { return ends_[position]; }

  /// First position that ends after the place; size() if there is none.
  std::size_t first_after(double place) const;
  /// How many begin before the place.
  std::size_t begins_before(std::int64_t place) const;
  /// How much of [begin, end) is covered.
  std::int64_t covered(std::int64_t begin, std::int64_t end) const;

 private:
  std::int64_t covered_before(std::int64_t place) const;

  // Arrays of their own instead of structs: a search by time reads nothing but times.
  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::int64_t> sums_;  ///< of all before every so-manieth
  std::int64_t sum_ = 0;            ///< of all
};

}  // namespace tidemark::gui
