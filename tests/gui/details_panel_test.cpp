// The panel of details answers what is selected: the peak, a run, a tensor, an op, a block or a
// range, in words and numbers that can be computed in the head.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::details_panel_test {
namespace {

constexpr float left = 944;  // of the panel, in a window of 1280 pixels

class DetailsPanel : public testing::Test {
 protected:
  void SetUp() override { robot_.open(synthetic(4)); }
  /// A line of it.
  std::string line(std::string_view text) const { return robot_.line_of(text, left); }

  Reader robot_{PixelSize{1280, 1200}};
};

TEST_F(DetailsPanel, FirstSaysWhatMakesThePeak) {
  EXPECT_EQ(line("Peak of"), "Peak of 4.00 KiB at 3.00 µs, for the forward of");
  EXPECT_EQ(line("activation"), "activation | 4.00 KiB   100 %");
  EXPECT_EQ(line("block0.gelu3"), "block0.gelu3");  // the title's second line
}

TEST_F(DetailsPanel, ThenWhatIsKnownOfTheRecording) {
  EXPECT_EQ(line("step"), "step | 8.00 µs");
  EXPECT_EQ(line("arena"), "arena | 4.00 KiB");
  EXPECT_EQ(line("capacity"), "capacity | unknown");
  EXPECT_EQ(line("work"), "work | 8 runs");
  EXPECT_EQ(line("budget"), "");
}

TEST_F(DetailsPanel, ACapacityThatIsNotTheDevicesIsABudget) {
  Recording recording = synthetic(4);
  recording.capacity = Bytes{6 << 10};
  recording.planned = {};
  robot_.open(std::move(recording));
  EXPECT_EQ(line("budget"), "budget | 6.00 KiB");
  EXPECT_EQ(robot_.drawn().count("capacity"), 0u);
  EXPECT_EQ(line("arena"), "arena | unknown");
}

// 1 of 4 KiB is a gradient from the third µs on.
TEST_F(DetailsPanel, CategoriesStandByTheirSizeAndAClickMarksThem) {
  Recording recording = synthetic(4);
  recording.schedule.buffers[3].category = Category::Gradient;
  recording.schedule.buffers[3].size = {1};
  robot_.open(std::move(recording));
  EXPECT_EQ(line("activation"), "activation | 3.00 KiB   100 %");
  EXPECT_EQ(line("gradient"), "gradient | 1 B   <1 %");
  const Drawing drawing = robot_.drawn();
  const auto find = [&](std::string_view text) {
    const auto found = std::ranges::find_if(
        drawing.texts, [&](const Drawn& one) { return one.text == text && one.box.x0 > left; });
    return found == drawing.texts.end() ? Box{} : found->box;
  };
  const Box activation = find("activation"), gradient = find("gradient");
  EXPECT_LT(activation.y0, gradient.y0);
  robot_.click(gradient.x0 + 10, std::floor(gradient.y0) + 5);
  EXPECT_EQ(robot_.view.selection, (Selection{.category = Category::Gradient}));
  robot_.click(gradient.x0 + 10, std::floor(gradient.y0) + 5);
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

TEST_F(DetailsPanel, SharesAreBars) {
  Recording recording = synthetic(4);
  recording.schedule.buffers[3].category = Category::Gradient;
  robot_.open(std::move(recording));
  const auto bar = [&](Category category) {
    for (const Drawn& shape : robot_.drawn().of_color(color_of(category)))
      if (shape.box.x0 > left && shape.alpha() == 110) return shape.box.width();
    return 0.0F;
  };
  EXPECT_NEAR(bar(Category::Activation), 3 * bar(Category::Gradient), 3);  // 3 KiB and 1
  EXPECT_GT(bar(Category::Gradient), 50);
  EXPECT_EQ(line("gradient"), "gradient | 1.00 KiB   25 %");
}

TEST_F(DetailsPanel, OfARunSaysWhenItReadsAndWrites) {
  select_run(robot_.shown(), RunId{1}, robot_.view);
  robot_.frames(2);
  EXPECT_EQ(line("forward of"), "forward of block0.gelu1");
  EXPECT_EQ(line("kind"), "kind | gelu, block0");
  EXPECT_EQ(line("time"), "time | 1 µs to 2 µs on stream 0");  // to the microsecond
  EXPECT_EQ(line("duration"), "duration | 900 ns");
  EXPECT_EQ(line("reads"), "reads | 0 B");
  EXPECT_EQ(line("1.00 KiB  "), "1.00 KiB  block0.gelu1");
  EXPECT_EQ(line("forward  "), "forward  900 ns at 1 µs");
  EXPECT_EQ(line("backward  "), "backward  900 ns at 6 µs");
}

TEST_F(DetailsPanel, AClickOnAnOperandOrARunSelectsIt) {
  select_run(robot_.shown(), RunId{1}, robot_.view);
  robot_.frames(2);
  robot_.click_on("backward  900 ns");
  EXPECT_EQ(robot_.view.selection.run, RunId{6});
  EXPECT_EQ(line("reads"), "reads | 1.00 KiB");
  robot_.click_on("1.00 KiB  block0.gelu1");
  EXPECT_EQ(robot_.view.selection.buffer, BufferId{1});
  EXPECT_FALSE(robot_.view.selection.run);
}

TEST_F(DetailsPanel, OfATensorSaysWhereItLives) {
  select_buffer(robot_.shown(), BufferId{1}, robot_.view);
  robot_.frames(2);
  EXPECT_EQ(line("size"), "size | 1.00 KiB (1024 B)");
  EXPECT_EQ(line("tensor"), "tensor | [256] float32");
  EXPECT_EQ(line("category"), "category | activation, value");
  EXPECT_EQ(line("block"), "block | block0");
  EXPECT_EQ(line("lives"), "lives | 1 µs to 7 µs");
  EXPECT_EQ(line("written by"), "written by | forward of block0.gelu1");
  EXPECT_EQ(line("freed after"), "freed after | backward of block0.gelu1");
  EXPECT_EQ(line("address"), "address | 1.00 KiB (byte 1024) of the arena");
}

TEST_F(DetailsPanel, WhatIsNeverFreedLivesToTheEnd) {
  Recording recording = synthetic(4);
  recording.timeline.memory.pop_back();  // the first tensor's end
  robot_.open(std::move(recording));
  select_buffer(robot_.shown(), BufferId{0}, robot_.view);
  robot_.frames(2);
  EXPECT_EQ(line("lives"), "lives | 0 to the end");
}

TEST_F(DetailsPanel, OfAnOpListsItsRuns) {
  select_op(static_cast<OpId>(2), robot_.view);
  robot_.frames(2);
  EXPECT_EQ(line("block0.gelu2"), "block0.gelu2");
  EXPECT_EQ(line("forward  "), "forward  900 ns at 2 µs");
  robot_.click_on("backward  900 ns");
  EXPECT_EQ(robot_.view.selection.run, RunId{5});
}

TEST_F(DetailsPanel, OfABlockSaysWhatIsAliveOfIt) {
  robot_.open(synthetic(40));
  robot_.view.selection.block = 1;
  robot_.frames(3);
  EXPECT_EQ(line("block1"), "block1");
  EXPECT_EQ(line("activation"), "activation | 20.0 KiB in 20");
  EXPECT_EQ(line("alive"), "alive | 20.0 KiB at 39.0 µs");
}

// From 1 to 5 µs: the runs at 1, 2, 3 and 4 µs on the first stream, 900 ns each. Three tensors are
// there at the end, the fourth came and went.
TEST_F(DetailsPanel, OfARangeSaysWhatHappensInIt) {
  robot_.view.range = Range{1000, 5000};
  robot_.frames(3);
  EXPECT_EQ(line("Range of"), "Range of 4.00 µs");
  EXPECT_EQ(line("stream 0 busy"), "stream 0 busy | 3.60 µs (90 %)");
  EXPECT_EQ(line("stream 1 busy"), "stream 1 busy | 0 ns (0 %)");
  EXPECT_EQ(line("idle"), "idle | 400 ns (10 %)");
  EXPECT_EQ(line("runs that begin"), "runs that begin | 4");
  EXPECT_EQ(line("live at its begin"), "live at its begin | 2.00 KiB");
  EXPECT_EQ(line("live at most"), "live at most | 4.00 KiB");
  EXPECT_EQ(line("live at its end"), "live at its end | 3.00 KiB, +1.00 KiB");
  EXPECT_EQ(line("allocated"), "allocated | 2.00 KiB in 2");
  EXPECT_EQ(line("freed"), "freed | 1.00 KiB in 1");
}

TEST(DetailsOfARange, HaveARowPerKindAndTheTensorsThatDiffer) {
  Reader robot({1280, 1200});
  robot.open(synthetic(4));
  robot.view.range = Range{1000, 5000};
  robot.frames(3);
  EXPECT_EQ(robot.line_of("gelu", left), "gelu | 4 | 3.60 µs | +1.00 KiB");
  EXPECT_EQ(robot.view.facts.range_rows, 1u);
  EXPECT_TRUE(robot.says("came and stays (+), went (−)"));
  EXPECT_TRUE(robot.says("+1.00 KiB  block0.gelu2"));
  EXPECT_FALSE(robot.says("+1.00 KiB  block0.gelu3"));
  robot.click_on("+1.00 KiB  block0.gelu2");
  EXPECT_EQ(robot.view.selection.buffer, BufferId{2});
  // Backwards through the second half all four go.
  robot.view.range = Range{4500, 8000};
  robot.view.selection = {};
  robot.frames(3);
  EXPECT_TRUE(robot.says("−1.00 KiB  block0.gelu0"));
  EXPECT_TRUE(robot.says("−1.00 KiB  block0.gelu3"));
}

// More operands than a dozen are counted.
TEST_F(DetailsPanel, LongListsAreCut) {
  Recording recording = synthetic(20);
  for (tidemark::Step& step : recording.schedule.steps)
    if (auto* run = std::get_if<tidemark::Run>(&step); run && run->first_operand == 0)
      run->writes = 15;  // the first run writes them all
  robot_.open(std::move(recording));
  robot_.size = {1280, 1400};
  select_run(robot_.shown(), RunId{0}, robot_.view);
  robot_.frames(3);
  EXPECT_EQ(line("writes"), "writes | 15.0 KiB");
  EXPECT_EQ(line("and 3 more"), "and 3 more");
  EXPECT_TRUE(robot_.says("1.00 KiB  block0.gelu11"));
  EXPECT_FALSE(robot_.says("1.00 KiB  block0.gelu12"));
}

}  // namespace
}  // namespace tidemark::gui::details_panel_test
