// What the mouse finds in the timeline, and what it does there: tooltips of runs, modules, phases
// and bands, clicks that select, and wheels that zoom and move.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::mouse_on_timeline_test {
namespace {

// Two blocks of twenty ops: forward to 40 µs, backward to 80.
class MouseOnTimeline : public testing::Test {
 protected:
  void SetUp() override { robot_.open(synthetic(40)); }
  float x_of(double microseconds) const { return std::floor(robot_.x_of(1000 * microseconds)); }
  float modules() const { return std::floor(robot_.view.facts.modules) + 6; }
  float phases() const { return modules() - 18; }

  Reader robot_;
};

TEST_F(MouseOnTimeline, AClickOnAModuleSelectsItsBlock) {
  robot_.click(x_of(30.5), modules());
  EXPECT_EQ(robot_.view.selection, (Selection{.block = 1}));
  robot_.click(x_of(10.5), modules());
  EXPECT_EQ(robot_.view.selection, (Selection{.block = 0}));
  robot_.move(x_of(30.5), modules());
  EXPECT_TRUE(robot_.says("a click selects all of it"));
}

// Without blocks a module is the first part of a path: its first op is selected.
TEST_F(MouseOnTimeline, OutsideOfBlocksAModuleIsItsFirstOp) {
  Recording recording = synthetic(40);
  Trace trace = *recording.trace;
  for (Op& op : trace.ops) op.block = -1;
  trace.blocks.clear();
  recording.trace = std::make_shared<const Trace>(std::move(trace));
  robot_.open(std::move(recording));
  robot_.size = {900, 800};  // blocks have no room for what is in them
  robot_.frames(2);
  robot_.click(x_of(30.5), modules());
  EXPECT_EQ(robot_.view.selection, (Selection{.op = static_cast<OpId>(20)}));
  robot_.size = {1280, 800};  // now they have
  robot_.frames(2);
  robot_.click(x_of(30.5), modules());
  EXPECT_EQ(robot_.view.selection, (Selection{.op = static_cast<OpId>(30)}));
}

TEST_F(MouseOnTimeline, APhaseSaysHowLongItTakes) {
  robot_.move(x_of(20), phases());
  EXPECT_TRUE(robot_.says("40.0 µs, 50 % of the step"));
  robot_.move(x_of(20), robot_.curve());
  EXPECT_FALSE(robot_.says("40.0 µs, 50 % of the step"));
}

TEST_F(MouseOnTimeline, ARunSaysWhatItIs) {
  robot_.view.visible = {0, 4000};
  robot_.frames(2);
  robot_.move(x_of(1.5), robot_.lane());
  EXPECT_TRUE(robot_.says("forward of block0.gelu1"));
  EXPECT_TRUE(robot_.says("duration: 900 ns"));
  EXPECT_TRUE(robot_.says("kind: gelu, block0"));
  EXPECT_FALSE(robot_.drawn().mentions("folded"));
  robot_.move(x_of(1.95), robot_.lane());  // between two runs
  EXPECT_FALSE(robot_.drawn().mentions("duration"));
}

TEST_F(MouseOnTimeline, AFoldedCellSaysWhatIsInIt) {
  robot_.open(synthetic(2000));  // 4 ms: a pixel is 5 µs
  robot_.move(x_of(1000), robot_.lane());
  const Drawing drawing = robot_.drawn();
  EXPECT_TRUE(drawing.mentions(" runs folded into one cell"));
  // Nine tenths of it are busy, the last pause left out.
  EXPECT_TRUE(drawing.mentions(" busy of "));
  EXPECT_TRUE(drawing.mentions("; the longest:"));
  EXPECT_TRUE(drawing.mentions("duration: 900 ns"));
}

TEST_F(MouseOnTimeline, AClickBetweenRunsClearsTheSelection) {
  robot_.view.visible = {0, 4000};
  robot_.frames(2);
  robot_.click(x_of(1.5), robot_.lane());
  EXPECT_EQ(robot_.view.selection.run, RunId{1});
  robot_.click(x_of(1.95), robot_.lane());
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

TEST_F(MouseOnTimeline, RunsOfBAreLookedAtAndNotSelected) {
  robot_.open(synthetic(20));
  robot_.view.shown = 0, robot_.view.against = 1;
  robot_.view.visible = {0, 8000};
  robot_.frames(3);
  const Drawn label = *robot_.drawn().find("B stream 0");
  robot_.click(x_of(2.5), std::floor(label.box.y0) + 6);
  EXPECT_TRUE(robot_.view.selection.is_empty());
  EXPECT_TRUE(robot_.says("forward of block0.gelu2"));
}

TEST_F(MouseOnTimeline, ABandIsNamedAndSelected) {
  robot_.view.curve.by = CurveBy::Module;
  robot_.frames(3);
  const float low = robot_.view.facts.memory_bottom - 8;
  robot_.move(x_of(30), low);
  EXPECT_EQ(robot_.view.facts.band, 0u);
  EXPECT_TRUE(robot_.drawn().mentions("20.0 KiB, "));  // block 0 is all there
  robot_.click(x_of(30), low);
  EXPECT_EQ(robot_.view.selection, (Selection{.block = 0}));
  EXPECT_NEAR(robot_.view.cursor_time, 30'000, 200);
}

TEST_F(MouseOnTimeline, OtherModulesThanTheSelectedAreDimInTheCurve) {
  robot_.view.curve.by = CurveBy::Module;
  robot_.view.selection.block = 1;
  robot_.frames(2);
  const Color first{0x2B, 0x5C, 0x9E};
  const Color second = mixed({0x9A, 0x94, 0x86}, theme::plot, 0.2);
  const auto alphas = [&](Color color) {
    std::set<unsigned> found;
    for (const Drawn& shape : robot_.drawn().of_color(color)) found.insert(shape.alpha());
    return found;
  };
  EXPECT_EQ(alphas(first), std::set<unsigned>{70});
  EXPECT_EQ(alphas(second), std::set<unsigned>{225});
}

TEST_F(MouseOnTimeline, TheWheelZoomsAndControlDoesSoInSmallSteps) {
  robot_.move(robot_.middle(), robot_.curve());
  const double all = robot_.view.visible.span();
  robot_.turn(1);
  EXPECT_NEAR(robot_.view.visible.span(), 0.8 * all, 1);
  robot_.input.keys = {Key::Control};
  robot_.turn(1);
  EXPECT_NEAR(robot_.view.visible.span(), 0.95 * 0.8 * all, 1);
  robot_.turn(-1);
  EXPECT_NEAR(robot_.view.visible.span(), 0.8 * all, 1);
}

TEST_F(MouseOnTimeline, TheWheelOverTheByteAxisLeavesTheTimeAlone) {
  Recording large = synthetic(4);
  for (Buffer& buffer : large.schedule.buffers) buffer.size = {std::int64_t{1} << 20};
  robot_.open(std::move(large));  // 4 MiB: zooming stops at 64 KiB
  const double top = robot_.view.facts.byte_top;
  const Range time = robot_.view.visible;
  const float y = robot_.view.facts.memory_bottom - 1;
  robot_.move(robot_.view.facts.left - 30, y);
  robot_.turn(2);
  ASSERT_TRUE(robot_.view.bytes);
  EXPECT_EQ(robot_.view.visible, time);
  EXPECT_NEAR(robot_.view.bytes->span(), 0.64 * top, 0.01 * top);
  EXPECT_NEAR(robot_.view.bytes->begin, 0, 0.01 * top);  // at the foot
  robot_.input.keys = {Key::Shift};
  robot_.turn(1);
  EXPECT_NEAR(robot_.view.bytes->begin, 0.064 * top, 0.01 * top);
  robot_.turn(-9);
  EXPECT_EQ(robot_.view.bytes->begin, 0);  // no emptiness below
  robot_.input.keys = {};
  robot_.turn(-9);
  EXPECT_FALSE(robot_.view.bytes);  // all of it is the usual picture
}

TEST_F(MouseOnTimeline, TheMiniMapFollowsAHandThatLeavesIt) {
  robot_.view.visible = {10'000, 20'000};
  robot_.frames(2);
  const float y = robot_.view.facts.mini_map + 10;
  robot_.move(x_of(15), y);  // on the map's own axis all of the step
  robot_.hold(0);
  robot_.move(robot_.middle(), y - 100);
  EXPECT_NEAR((robot_.view.visible.begin + robot_.view.visible.end) / 2, 40'000, 100);
  EXPECT_NEAR(robot_.view.visible.span(), 10'000, 1);
  robot_.release(0);
  EXPECT_FALSE(robot_.view.range);
  EXPECT_FALSE(robot_.view.drag_from);
}

TEST_F(MouseOnTimeline, ATremblingHandClicks) {
  robot_.move(x_of(30), robot_.curve());
  robot_.hold(0);
  robot_.move(x_of(30) + 2, robot_.curve());  // below the threshold of a drag
  robot_.release(0);
  EXPECT_FALSE(robot_.view.range);
  EXPECT_NEAR(robot_.view.cursor_time, 30'000, 400);
}

TEST_F(MouseOnTimeline, ARangeEndsWhereTheStepDoes) {
  robot_.drag(0, x_of(70), robot_.view.facts.right - 2, robot_.curve());
  ASSERT_TRUE(robot_.view.range);
  EXPECT_EQ(robot_.view.range->end, 80'000);
  robot_.drag(0, x_of(20), robot_.view.facts.left + 1, robot_.curve());
  ASSERT_TRUE(robot_.view.range);
  EXPECT_EQ(robot_.view.range->begin, 0);
  EXPECT_NEAR(robot_.view.range->end, 20'000, 120);
}

TEST_F(MouseOnTimeline, LeftOfTheAxisNothingIsDragged) {
  robot_.drag(0, robot_.view.facts.left - 50, robot_.view.facts.left - 10, robot_.curve());
  EXPECT_FALSE(robot_.view.range);
  EXPECT_FALSE(robot_.view.hover);
}

TEST_F(MouseOnTimeline, TheHandleBetweenTheHalvesMovesThem) {
  const float before = robot_.view.facts.memory_bottom;
  const float handle = std::floor(robot_.view.facts.mini_map) + 2.2F * 14 + 5 + 4;
  robot_.move(robot_.middle() - 200, handle);
  robot_.hold(0);
  robot_.move(robot_.middle() - 200, handle - 60);
  robot_.release(0);
  EXPECT_NEAR(robot_.view.facts.memory_bottom, before - 60, 2);
  robot_.move(robot_.middle() - 200, handle - 60);
  robot_.hold(0);
  robot_.move(robot_.middle() - 200, 5);
  robot_.release(0);
  EXPECT_FLOAT_EQ(robot_.view.lower_share, 0.75F);  // not more
}

}  // namespace
}  // namespace tidemark::gui::mouse_on_timeline_test
