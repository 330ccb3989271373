// Two recordings side by side: what differs, in numbers that can be computed in the head, and the
// list of all that is open.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::compare_panel_test {
namespace {

constexpr float right = 940;  // where the details begin

// Four tensors of a KiB in 8 µs beside two in 4.
class ComparePanel : public testing::Test {
 protected:
  void SetUp() override {
    robot_.open(synthetic(4));
    robot_.open(synthetic(2));
    robot_.view.shown = 0, robot_.view.against = 1;
    robot_.frames(3);
    robot_.open_tab(Tab::Compare);
  }
  std::string line(std::string_view text) const {
    const Drawing drawing = robot_.drawn();
    const Drawn* what = drawing.find("what");
    for (const Drawn& one : drawing.texts)
      if (what && one.text == text && one.box.y0 > what->box.y0 && one.box.x0 < 60)
        return drawing.line_in({0, one.box.y0, right, one.box.y1});
    return "";
  }
  void turn_round() {
    robot_.view.shown = 1, robot_.view.against = 0;
    robot_.frames(5);
  }

  Reader robot_{PixelSize{1280, 1100}};
};

TEST_F(ComparePanel, SaysWhichTensorsMakeTheDifference) {
  EXPECT_TRUE(robot_.says("B: 2.00 KiB less than A: 1.00 KiB block0.gelu2, 1.00 KiB block0.gelu3"));
  EXPECT_TRUE(
      robot_.says("alive at the peaks: 4.00 KiB and 2.00 KiB; 2 tensors of 2.00 KiB have a partner "
                  "of their size"));
  turn_round();
  EXPECT_TRUE(robot_.says("B: 2.00 KiB more than A: 1.00 KiB block0.gelu2, 1.00 KiB block0.gelu3"));
}

TEST_F(ComparePanel, RowsHaveBothNumbersAndTheChange) {
  EXPECT_EQ(line("live peak"), "live peak | 4.00 KiB | 2.00 KiB | -2.00 KiB  -50.0 %");
  EXPECT_EQ(line("planned"), "planned | 4.00 KiB | 2.00 KiB | -2.00 KiB  -50.0 %");
  EXPECT_EQ(line("step"), "step | 8.00 µs | 4.00 µs | -4.00 µs  -50.0 %");
  EXPECT_EQ(line("block0.gelu2"), "block0.gelu2 | 1.00 KiB | - | -1.00 KiB  gone");
  turn_round();
  EXPECT_EQ(line("live peak"), "live peak | 2.00 KiB | 4.00 KiB | +2.00 KiB  +100.0 %");
  EXPECT_EQ(line("block0.gelu2"), "block0.gelu2 | - | 1.00 KiB | +1.00 KiB  new");
}

TEST_F(ComparePanel, HeadingsCountWhatDoesNotDiffer) {
  EXPECT_EQ(line("totals"), "totals | 1 unchanged");
  EXPECT_EQ(line("time"), "time | 3 unchanged");
}

TEST_F(ComparePanel, BarsGoLeftForLessAndRightForMore) {
  const auto bars = [&](Color color) {
    std::vector<Box> found;
    for (const Drawn& shape : robot_.drawn().of_color(color))
      if (shape.box.y0 > 600 && shape.alpha() == 255) found.push_back(shape.box);
    return found;
  };
  const auto less = bars(verdict::better);
  ASSERT_FALSE(less.empty());
  EXPECT_TRUE(bars(verdict::worse).empty());
  turn_round();
  const auto more = bars(verdict::worse);
  ASSERT_EQ(more.size(), less.size());
  EXPECT_TRUE(bars(verdict::better).empty());
  // Those of the largest change of a table are half of the column; they meet in its middle.
  EXPECT_NEAR(less[0].x1, more[0].x0, 1);
  EXPECT_NEAR(less[0].width(), more[0].width(), 1);
  EXPECT_NEAR(less[0].width(), 3 * 14, 4);  // of 6 em
}

TEST_F(ComparePanel, WhatHasNoPartnerIsListedOnAClick) {
  ASSERT_TRUE(robot_.says("less (2)"));
  EXPECT_FALSE(robot_.says("1.00 KiB  block0.gelu3"));
  robot_.click_on("less (2)");
  EXPECT_TRUE(robot_.says("1.00 KiB  block0.gelu2"));
  EXPECT_TRUE(robot_.says("1.00 KiB  block0.gelu3"));
  turn_round();
  EXPECT_TRUE(robot_.says("more (2)"));
}

TEST_F(ComparePanel, WithNothingToCompareItSaysWhatToDo) {
  robot_.view.against.reset();
  robot_.frames(2);
  EXPECT_TRUE(robot_.drawn().mentions("Choose what to compare with above"));
  EXPECT_FALSE(robot_.says("live peak"));
}

// 41 tensors more: thirty are listed.
TEST(CompareOfMany, ListsAreCut) {
  Reader robot({1280, 1400});
  robot.open(synthetic(2));
  robot.open(synthetic(43));
  robot.view.shown = 0, robot.view.against = 1, robot.view.lower_share = 0.7F;
  robot.frames(3);
  robot.open_tab(Tab::Compare);
  robot.click_on("more (");
  EXPECT_TRUE(robot.drawn().mentions(" more"));
  const Drawing drawing = robot.drawn();
  const std::size_t listed =
      static_cast<std::size_t>(std::ranges::count_if(drawing.texts, [](const Drawn& one) {
        return one.text.starts_with("1.00 KiB  block") && one.box.x0 < 60;
      }));
  EXPECT_EQ(listed, 30u);
  EXPECT_TRUE(robot.says("and 11 more"));
}

class RecordingsPanel : public ComparePanel {
 protected:
  void SetUp() override {
    ComparePanel::SetUp();
    robot_.open_tab(Tab::Recordings);
  }
  /// The lines of the two recordings.
  std::vector<std::string> lines() const {
    const Drawing drawing = robot_.drawn();
    const float first = robot_.view.facts.first_recording;
    std::vector<std::string> lines;
    for (int i = 0; i < 2; ++i) {
      const float y = first - 2 + 18 * static_cast<float>(i);
      lines.push_back(drawing.line_in({0, y, right, y + 17}));
    }
    return lines;
  }
};

const std::string name = "synthetic · synthetic · predicted for a100-80gb";

TEST_F(RecordingsPanel, HasALineForEachWithItsNumbers) {
  EXPECT_EQ(lines()[0], "A | " + name + " | 4.00 KiB | 8.00 µs | kept | compare | close");
  EXPECT_EQ(lines()[1], "B | " + name + " (2) | 2.00 KiB | 4.00 µs | kept | leave | close");
}

TEST_F(RecordingsPanel, AClickShowsOneAndTheOtherIsComparedThen) {
  robot_.click(200, robot_.view.facts.first_recording + 18 + 6);
  EXPECT_EQ(robot_.view.shown, 1u);
  EXPECT_EQ(robot_.view.against, 0u);
  EXPECT_EQ(robot_.view.visible, whole({8000}));  // B lasts longer
  EXPECT_TRUE(lines()[1].starts_with("A | "));
}

TEST_F(RecordingsPanel, ComparisonsAreLeftAndTakenUp) {
  robot_.click_on("leave");
  EXPECT_FALSE(robot_.view.against);
  EXPECT_TRUE(lines()[1].ends_with("kept | compare | close"));
  // That of the one that is shown does nothing.
  robot_.click_on("compare");
  EXPECT_FALSE(robot_.view.against && *robot_.view.against == 0);
  const Drawing drawing = robot_.drawn();
  float lowest = 0, x = 0;
  for (const Drawn& one : drawing.texts)
    if (one.text == "compare" && one.box.y0 > lowest) lowest = one.box.y0, x = one.box.x0;
  robot_.click(std::floor(x) + 10, std::floor(lowest) + 6);
  EXPECT_EQ(robot_.view.against, 1u);
}

TEST_F(RecordingsPanel, AreClosed) {
  const Drawing drawing = robot_.drawn();
  float lowest = 0, x = 0;
  for (const Drawn& one : drawing.texts)
    if (one.text == "close" && one.box.y0 > lowest) lowest = one.box.y0, x = one.box.x0;
  robot_.click(std::floor(x) + 10, std::floor(lowest) + 6);
  EXPECT_EQ(robot_.model.recordings().size(), 1u);
  EXPECT_EQ(robot_.view.shown, 0u);
  EXPECT_FALSE(robot_.view.against);
}

}  // namespace
}  // namespace tidemark::gui::compare_panel_test
