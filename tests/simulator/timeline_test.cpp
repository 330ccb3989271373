// Totals, the first peak and who is alive follow from the events of a timeline.
#include "simulator/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/hand_made.h"

namespace tidemark::timeline_test {
namespace {

using std::chrono::nanoseconds;
using testing::ElementsAre;

/// weight (100 B) is there; a (10 B), b (20 B) and c (20 B) come and go.
struct TimelineTest : testing::Test {
  HandMade made;
  BufferId weight = made.place(100);
  BufferId a = made.allocate(10), b = made.allocate(20, s0, Category::Gradient),
           c = made.allocate(20);
  Timeline timeline;

  TimelineTest() {
    timeline.baseline[static_cast<std::size_t>(Category::Parameter)] = {100};
    timeline.memory = {{nanoseconds(1), a, true},  {nanoseconds(2), b, true},
                       {nanoseconds(3), a, false}, {nanoseconds(4), b, false},
                       {nanoseconds(4), c, true},  {nanoseconds(5), a, true}};
  }
};

TEST_F(TimelineTest, TotalIsTheSumOfCategories) {
  BytesByCategory bytes{};
  bytes[0] = {1}, bytes[3] = {20}, bytes[category_count - 1] = {300};
  EXPECT_EQ(total(bytes), Bytes{321});
}

// 100, 110, 130, 120, 100, 120, 130: the second time at 130 is not the first.
TEST_F(TimelineTest, PeakIsTheFirstMomentOfMost) {
  const Peak top = peak(made.schedule(), timeline);
  EXPECT_EQ(top.bytes, Bytes{130});
  EXPECT_EQ(top.event, 1u);
  EXPECT_EQ(top.by_category[static_cast<std::size_t>(Category::Gradient)], Bytes{20});
  EXPECT_EQ(total(top.by_category), top.bytes);
}

TEST_F(TimelineTest, PeakBeforeAllEventsHasNone) {
  timeline.memory.clear();
  EXPECT_EQ(peak(made.schedule(), timeline).bytes, Bytes{100});
  EXPECT_EQ(peak(made.schedule(), timeline).event, timeline.memory.size());
}

TEST_F(TimelineTest, AliveIsWhoWasThereRightAfterAnEvent) {
  EXPECT_THAT(alive_after(made.schedule(), timeline, 1), ElementsAre(weight, a, b));
  EXPECT_THAT(alive_after(made.schedule(), timeline, 2), ElementsAre(weight, b));
  EXPECT_THAT(alive_after(made.schedule(), timeline, 3), ElementsAre(weight));
}

}  // namespace
}  // namespace tidemark::timeline_test
