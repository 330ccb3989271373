// Rows of counts lie beside each other and do not touch each other's.
#include "simulator/stream_counts.h"

#include <gtest/gtest.h>

#include <array>

namespace tidemark::stream_counts_test {
namespace {

using Row = std::vector<std::uint32_t>;

Row row_of(const StreamCounts& counts, std::size_t row) {
  return {counts[row].begin(), counts[row].end()};
}

TEST(StreamCounts, AreZeroUntilCounted) {
  StreamCounts counts(3, 2);
  EXPECT_EQ(counts.rows(), 2u);
  EXPECT_EQ(row_of(counts, 1), Row({0, 0, 0}));
  counts[1][2] = 7;
  counts.resize(4);
  EXPECT_EQ(row_of(counts, 0), Row({0, 0, 0}));
  EXPECT_EQ(row_of(counts, 1), Row({0, 0, 7}));
  EXPECT_EQ(row_of(counts, 3), Row({0, 0, 0}));
}

TEST(StreamCounts, GrowByARow) {
  StreamCounts counts(2);
  EXPECT_EQ(counts.rows(), 0u);
  counts.append(Row({1, 2}));
  counts.append(Row({3, 4}))[0] = 9;
  EXPECT_EQ(row_of(counts, 0), Row({1, 2}));
  EXPECT_EQ(row_of(counts, 1), Row({9, 4}));
}

TEST(StreamCounts, CoverWhatIsNowhereHigher) {
  const Row low = {0, 3, 1}, high = {0, 3, 2}, other = {1, 0, 0};
  EXPECT_TRUE(covers(low, low));
  EXPECT_TRUE(covers(high, low));
  EXPECT_FALSE(covers(low, high));
  EXPECT_FALSE(covers(high, other));
  EXPECT_FALSE(covers(other, high));
}

TEST(StreamCounts, AreRaisedStreamByStream) {
  Row counts = {0, 5, 1};
  raise_to(counts, Row({2, 3, 1}));
  EXPECT_EQ(counts, Row({2, 5, 1}));
}

}  // namespace
}  // namespace tidemark::stream_counts_test
