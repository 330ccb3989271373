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

// Ten of its runs are forward and ten backward. From afar those are marked that can be told apart;
// none is lost by zooming in.
TEST_F(Huge, AnOpIsMarkedWhereverItRuns) {
  const Opened& shown = robot_.shown();
  const OpId op = shown.op_of(RunId{0});
  ASSERT_EQ(shown.runs_of(op).size(), 20u);
  select_run(shown, RunId{0}, robot_.view);
  robot_.frames(1);
  EXPECT_EQ(robot_.view.facts.marks, 20u);
  // Runs of 900 ns, one per microsecond: three in 2,500 ns, of one op each.
  robot_.view.visible = {0.0, 2'500.0};
  robot_.frames(1);
  EXPECT_EQ(robot_.view.facts.marks, 1u);
  for (const std::uint32_t run : shown.runs_of(op)) {
    // From the middle of it on, so that it begins before what is visible.
    const auto begin = static_cast<double>(shown[RunId{run}].begin.count());
    robot_.view.visible = {begin + 450, begin + 1'950};
    robot_.frames(1);
    EXPECT_EQ(robot_.view.facts.marks, 1u) << run;
  }
}

TEST(ManyRunsOfOneOp, AreMarkedOncePerPixelAtMost) {
  using enum Task;
  Recording recording = of_tasks(std::vector<Task>(50'000, Forward));
  recording.trace = chain_of_gelus(1);
  for (Step& step : recording.schedule.steps) std::get<tidemark::Run>(step).op = OpId{0};
  Robot robot;
  robot.open(std::move(recording));
  select_run(robot.shown(), RunId{49'999}, robot.view);
  robot.frames(1);
  const float width = robot.view.facts.right - robot.view.facts.left;
  EXPECT_LE(static_cast<float>(robot.view.facts.marks), width / 3 + 2);
  EXPECT_GE(static_cast<float>(robot.view.facts.marks), width / 4);
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
