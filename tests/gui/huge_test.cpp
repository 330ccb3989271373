// What is drawn depends on the pixels, not on how much there is.
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::huge_test {
namespace {

class Huge : public testing::Test {
 protected:
  static constexpr std::size_t pairs = 100'000;
  void SetUp() override { robot_.open(synthetic(pairs)); }
  Robot robot_;
};

TEST_F(Huge, CellsAndColumnsAreAsFewAsPixelsAtAnyZoom) {
  const auto width = static_cast<std::size_t>(robot_.view.facts.right - robot_.view.facts.left);
  robot_.move(robot_.middle(), robot_.curve());
  for (int i = 0; i < 80; ++i) {
    EXPECT_LE(robot_.view.facts.cells, 2 * (width + 4)) << robot_.view.visible.span();
    EXPECT_LE(robot_.view.facts.columns, width + 2) << robot_.view.visible.span();
    robot_.turn(1);
  }
  EXPECT_LT(robot_.view.visible.span(), 1000);
}

TEST_F(Huge, NoRunIsLostByFolding) { EXPECT_EQ(robot_.view.facts.runs, 2 * pairs); }

TEST_F(Huge, ThePeakIsThePeakAtAnyZoom) {
  const MemoryPyramid& memory = robot_.shown().memory();
  EXPECT_EQ(memory.total_of(memory.highest()), Bytes{static_cast<std::int64_t>(pairs) << 10});
  EXPECT_EQ(memory.highest_in(0, robot_.shown().end()), memory.highest());
}

// The table says what it does not list.
TEST_F(Huge, TheLiveSetIsCutAndCounted) {
  robot_.frames(5);
  ASSERT_TRUE(robot_.model.live().is_complete());
  const LiveSet& live = robot_.model.live().current();
  EXPECT_EQ(live.count, pairs);
  EXPECT_EQ(live.largest.size(), LiveSet::most_listed);
  EXPECT_EQ(live.bytes.count, static_cast<std::int64_t>(pairs) << 10);
  EXPECT_EQ(live.bytes_listed.count, static_cast<std::int64_t>(LiveSet::most_listed) << 10);
}

}  // namespace
}  // namespace tidemark::gui::huge_test
