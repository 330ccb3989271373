// Stretches are found and added up as a walk through all of them would.
#include "gui/indexes/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tidemark::gui::coverage_test {
namespace {

struct Stretch {
  std::int64_t begin, end;
};

/// Some touch, some are empty, and there are enough for several kept sums.
std::vector<Stretch> stretches(std::size_t count) {
  std::mt19937 random(404);
  std::vector<Stretch> made;
  std::int64_t place = 3;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t begin = place + static_cast<std::int64_t>(random() % 4);
    place = begin + static_cast<std::int64_t>(random() % 5);
    made.push_back({begin, place});
  }
  return made;
}

Coverage coverage_of(const std::vector<Stretch>& all) {
  Coverage coverage;
  coverage.reserve(all.size());
  for (const Stretch& stretch : all) coverage.add(stretch.begin, stretch.end);
  return coverage;
}

std::int64_t walked(const std::vector<Stretch>& all, std::int64_t begin, std::int64_t end) {
  std::int64_t sum = 0;
  for (const Stretch& stretch : all)
    sum += std::max<std::int64_t>(0, std::min(end, stretch.end) - std::max(begin, stretch.begin));
  return sum;
}

// [10, 14) and [14, 20), [30, 31)
TEST(Coverage, FindsPlacesBetweenStretches) {
  const Coverage coverage = coverage_of({{10, 14}, {14, 20}, {30, 31}});
  EXPECT_EQ(coverage.size(), 3u);
  EXPECT_EQ(coverage.begin_of(1), 14);
  EXPECT_EQ(coverage.end_of(1), 20);
  EXPECT_EQ(coverage.first_after(0), 0u);
  EXPECT_EQ(coverage.first_after(13.5), 0u);
  EXPECT_EQ(coverage.first_after(14), 1u);  // [10, 14) ends there, and not after it
  EXPECT_EQ(coverage.first_after(25), 2u);
  EXPECT_EQ(coverage.first_after(31), 3u);
  EXPECT_EQ(coverage.begins_before(10), 0u);
  EXPECT_EQ(coverage.begins_before(11), 1u);
  EXPECT_EQ(coverage.begins_before(14), 1u);
  EXPECT_EQ(coverage.begins_before(99), 3u);
}

TEST(Coverage, CountsPartsOfStretches) {
  const Coverage coverage = coverage_of({{10, 14}, {14, 20}, {30, 31}});
  EXPECT_EQ(coverage.covered(0, 40), 11);
  EXPECT_EQ(coverage.covered(12, 16), 4);
  EXPECT_EQ(coverage.covered(20, 30), 0);
  EXPECT_EQ(coverage.covered(13, 13), 0);
  EXPECT_EQ(coverage.covered(16, 12), 0);  // the wrong way round covers nothing, not less
}

TEST(Coverage, OfNothingIsNothing) {
  const Coverage none;
  EXPECT_EQ(none.covered(0, 100), 0);
  EXPECT_EQ(none.first_after(0), 0u);
}

// 64 stretches share a sum: beginnings, ends and middles around each of them.
TEST(Coverage, IsWhatAWalkWouldCount) {
  const std::vector<Stretch> all = stretches(300);
  const Coverage coverage = coverage_of(all);
  for (std::size_t i = 0; i < all.size(); i += 3)
    for (std::size_t k = i; k < all.size(); k += 7)
      for (const std::int64_t more : {-1, 0, 1}) {
        const std::int64_t begin = all[i].begin + more, end = all[k].end - more;
        if (begin > end) continue;
        ASSERT_EQ(coverage.covered(begin, end), walked(all, begin, end)) << begin << " " << end;
      }
}

TEST(CoverageDeathTest, TakesNoStretchBeforeTheLast) {
  Coverage coverage = coverage_of({{10, 14}});
  EXPECT_DEATH(coverage.add(13, 20), "coverage.cpp");
  EXPECT_DEATH(coverage.add(20, 19), "coverage.cpp");
}

}  // namespace
}  // namespace tidemark::gui::coverage_test
