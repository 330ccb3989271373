// Cells hold each visible stretch of a random track once, fold only narrow ones, and stay few.
#include <gtest/gtest.h>

#include "gui/indexes/track_index.h"
#include "tests/gui/brute_force.h"
#include "tests/simulator/random_step.h"

namespace tidemark::gui::track_index_property_test {
namespace {

struct Drawn {
  std::vector<Stretch> stretches;
  TrackIndex track;
  Range range;
  double cell;
  std::vector<Cell> cells;
};

Drawn drawn(std::uint64_t seed) {
  Dice dice(seed);
  Drawn d;
  d.stretches = random_stretches(dice, 1 + dice.below(300));
  d.track = TrackIndex(d.stretches);
  const auto end = static_cast<double>(d.stretches.back().end);
  d.range.begin = end * static_cast<double>(dice.below(100)) / 100 - 5;
  d.range.end = d.range.begin + 1 + end * static_cast<double>(dice.below(100)) / 100;
  d.cell = 0.3 + static_cast<double>(dice.below(40));
  d.track.visit(d.range, d.cell, [&](Cell cell) { d.cells.push_back(cell); });
  return d;
}

// Folding changes how things are drawn, not whether.
TEST(TrackIndex, CellsHoldEveryVisibleStretchOnce) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Drawn d = drawn(seed);
    std::size_t next = d.track.first_after(d.range.begin);
    for (const Cell& cell : d.cells) {
      ASSERT_EQ(cell.first, next) << seed;
      ASSERT_LT(cell.first, cell.last) << seed;
      next = cell.last;
    }
    const bool is_all =
        next == d.track.size() || static_cast<double>(d.track.begin_of(next)) >= d.range.end;
    EXPECT_TRUE(is_all) << seed;
  }
}

TEST(TrackIndex, OnlyNarrowNeighboursAreFolded) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Drawn d = drawn(seed);
    for (const Cell& cell : d.cells) {
      if (!cell.is_folded()) continue;
      for (std::size_t i = cell.first; i < cell.last; ++i)
        ASSERT_LT(static_cast<double>(d.track.end_of(i) - d.track.begin_of(i)), d.cell) << seed;
      const auto width =
          static_cast<double>(d.track.end_of(cell.last - 1) - d.track.begin_of(cell.first));
      ASSERT_LE(width, d.cell) << seed;
    }
  }
}

// Two cells begin in the same multiple of the width only if one of them ends beyond it: the number
// of cells is bounded by the pixels, whatever the number of stretches.
TEST(TrackIndex, CellsAreAsFewAsPixels) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Drawn d = drawn(seed);
    EXPECT_LE(static_cast<double>(d.cells.size()), 2 * d.range.span() / d.cell + 4) << seed;
  }
}

TEST(TrackIndex, CoverIsTheSumOfWhatIsCut) {
  Dice dice(7);
  const auto stretches = random_stretches(dice, 200);
  const TrackIndex track(stretches);
  for (int i = 0; i < 2000; ++i) {
    const auto begin = static_cast<std::int64_t>(dice.below(4000)) - 10;
    const auto end = begin + static_cast<std::int64_t>(dice.below(3000));
    std::int64_t expected = 0;
    for (const Stretch& s : stretches)
      expected += std::max<std::int64_t>(0, std::min(end, s.end) - std::max(begin, s.begin));
    ASSERT_EQ(track.covered(begin, end), expected) << begin << " to " << end;
  }
}

TEST(TrackIndex, FindsTheStretchAtAPlace) {
  const TrackIndex track({{10, 20, 7}, {20, 30, 8}, {40, 50, 9}});
  EXPECT_EQ(track.at(9.5), track.size());
  EXPECT_EQ(track.item_of(track.at(10)), 7u);
  EXPECT_EQ(track.item_of(track.at(20)), 8u);  // half open: the second begins where the first ends
  EXPECT_EQ(track.at(35), track.size());
  EXPECT_EQ(track.item_of(track.at(49.9)), 9u);
  EXPECT_EQ(track.at(50), track.size());
}

TEST(TrackIndex, OrderOfStretchesDoesNotMatter) {
  const TrackIndex track({{40, 50, 9}, {10, 20, 7}});
  EXPECT_EQ(track.item_of(0), 7u);
  EXPECT_EQ(track.longest_of({0, 2}), 0u);  // equal lengths: the first
}

}  // namespace
}  // namespace tidemark::gui::track_index_property_test
