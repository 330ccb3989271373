// Counts of more streams than lie in the type itself behave as those of few.
#include "simulator/stream_counts.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(StreamCounts, AreZeroUntilCounted) {
  const StreamCounts none;
  EXPECT_EQ(none[0], 0u);
  EXPECT_EQ(none[1000], 0u);
}

TEST(StreamCounts, CoverWhatIsNowhereHigher) {
  StreamCounts a, b;
  a[2] = 3, b[2] = 3;
  EXPECT_TRUE(a.covers(b) && b.covers(a));
  b[9] = 1;
  EXPECT_FALSE(a.covers(b));
  EXPECT_TRUE(b.covers(a));
  a[9] = 2;
  EXPECT_TRUE(a.covers(b));
  EXPECT_FALSE(b.covers(a));
}

TEST(StreamCounts, AreRaisedStreamByStream) {
  StreamCounts a, b;
  a[1] = 5, a[6] = 1, b[1] = 2, b[6] = 4, b[8] = 7;
  a.raise_to(b);
  EXPECT_EQ(a[1], 5u);
  EXPECT_EQ(a[6], 4u);
  EXPECT_EQ(a[8], 7u);
  b.raise_to(a);
  EXPECT_EQ(a, b);
}

TEST(StreamCounts, AreEqualWithoutTheirLastZeros) {
  StreamCounts a, b;
  a[7] = 0;
  EXPECT_EQ(a, b);
  a[7] = 1;
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace tidemark
