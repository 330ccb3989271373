// The timeline as it is read: moments on their flags, whose lane is whose, what is alive at the
// mouse and at the cursor, peaks, levels and ranges.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::timeline_panel_test {
namespace {

// Four tensors of a KiB come at 0, 1, 2 and 3 µs and go at 7.9, 6.9, 5.9 and 4.9 µs.
class Timelines : public testing::Test {
 protected:
  void SetUp() override { robot_.open(synthetic(4)); }
  void compare_with(Recording recording) {
    robot_.open(std::move(recording));
    robot_.view.shown = 0, robot_.view.against = robot_.model.recordings().size() - 1;
    robot_.frames(3);
  }
  float curve_at(double bytes) const {
    const auto& facts = robot_.view.facts;
    // 1.4 em above the curve are the labels' own.
    const float top = facts.memory_top + 1.4F * 14;
    return facts.memory_bottom -
           static_cast<float>(bytes / facts.byte_top) * (facts.memory_bottom - top);
  }

  Reader robot_;
};

TEST_F(Timelines, TheCursorsFlagStandsAtThePeak) {
  const Drawing drawing = robot_.drawn();
  const Drawn* flag = drawing.find("3.000 µs");
  ASSERT_TRUE(flag);
  EXPECT_NEAR((flag->box.x0 + flag->box.x1) / 2, robot_.x_of(3000), 1);
  EXPECT_FALSE(drawing.says("3 µs"));  // the tick below it gives way
  for (const char* tick : {"1 µs", "2 µs", "4 µs", "7 µs"}) EXPECT_TRUE(drawing.says(tick)) << tick;
}

TEST_F(Timelines, TicksStandRightOfTheirLines) {
  const Drawing drawing = robot_.drawn();
  for (int i : {1, 2, 4, 5})
    EXPECT_NEAR(drawing.find(std::to_string(i) + " µs")->box.x0,
                std::floor(robot_.x_of(1000 * i)) + 4, 0.6);
}

TEST_F(Timelines, TheMouseHasAFlagAndReadsTheMoment) {
  EXPECT_TRUE(robot_.says("4.00 KiB live"));
  EXPECT_TRUE(robot_.says("activation 4.00 KiB"));
  robot_.move(std::floor(robot_.x_of(1500)), robot_.curve());
  EXPECT_TRUE(robot_.says("2.00 KiB live"));
  EXPECT_TRUE(robot_.says("activation 2.00 KiB"));
  ASSERT_TRUE(robot_.view.hover);
  EXPECT_NEAR(*robot_.view.hover, 1500, 10);
  const Drawing drawing = robot_.drawn();
  const bool has_flag = std::ranges::any_of(drawing.texts, [&](const Drawn& one) {
    return one.text.starts_with("1.5") && one.text.ends_with(" µs") && one.box.y0 < 75;
  });
  EXPECT_TRUE(has_flag);
  robot_.move(10, 10);
  EXPECT_FALSE(robot_.view.hover);
  EXPECT_TRUE(robot_.says("4.00 KiB live"));
}

TEST_F(Timelines, WhatIsHiddenIsSaid) {
  robot_.view.curve.hidden.set(static_cast<std::size_t>(Category::Activation));
  robot_.frames(2);
  EXPECT_TRUE(robot_.says("activation hidden"));
  EXPECT_TRUE(robot_.says("0 B at most, without activation"));
}

TEST_F(Timelines, ThePeakSaysHowMuchOfWhatAndForWhom) {
  EXPECT_TRUE(robot_.says("peak 4.00 KiB: 100 % activation, forward of block0.gelu3"));
  robot_.size = {700, 700};
  robot_.frames(3);
  EXPECT_FALSE(robot_.says("peak 4.00 KiB: 100 % activation, forward"));
  EXPECT_TRUE(robot_.says("peak 4.00 KiB"));
}

TEST_F(Timelines, LanesAreCalledAfterTheirStreams) {
  EXPECT_TRUE(robot_.says("stream 0"));
  EXPECT_TRUE(robot_.says("stream 1"));
  compare_with(synthetic(2));
  for (const char* name : {"A stream 0", "A stream 1", "B stream 0", "B stream 1"})
    EXPECT_TRUE(robot_.says(name)) << name;
}

TEST_F(Timelines, WhatIsComparedIsReadAtTheSameMoment) {
  compare_with(synthetic(2));
  EXPECT_TRUE(robot_.says("B: synthetic, predicted, 2.00 KiB"));
  EXPECT_TRUE(robot_.says("B 2.00 KiB"));  // its peak
  // At 3.5 µs B has one tensor left: the other went at 2.9.
  robot_.move(std::floor(robot_.x_of(3500)), robot_.curve());
  EXPECT_TRUE(robot_.says("B: synthetic, predicted, 1.00 KiB"));
  EXPECT_TRUE(robot_.says("4.00 KiB live"));
  // After its 4 µs nothing is said of it.
  robot_.move(std::floor(robot_.x_of(5500)), robot_.curve());
  EXPECT_TRUE(robot_.says("B: synthetic, predicted, -"));
}

TEST_F(Timelines, WhereAHasEndedItIsSaid) {
  compare_with(synthetic(8));
  robot_.move(std::floor(robot_.x_of(12'000)), robot_.curve());
  EXPECT_TRUE(robot_.says("A has ended"));
  EXPECT_TRUE(robot_.says("activation -"));
  // The axis goes to the end of the longer one.
  EXPECT_EQ(robot_.view.end, 16'000);
}

TEST_F(Timelines, MoreThanFourCurvesAreCounted) {
  for (int i = 0; i < 5; ++i) robot_.open(synthetic(2));
  robot_.view.shown = 0, robot_.view.against = 1;
  robot_.frames(3);
  EXPECT_TRUE(robot_.says("E: synthetic, predicted,"));
  EXPECT_FALSE(robot_.says("F: "));
  EXPECT_TRUE(robot_.says("1 more open, not drawn"));
}

TEST_F(Timelines, AnotherModelIsCalledByItsName) {
  Recording other = synthetic(2);
  Trace trace = *other.trace;
  trace.model = "another";
  other.trace = std::make_shared<const Trace>(std::move(trace));
  compare_with(std::move(other));
  EXPECT_TRUE(robot_.says("B: another · synthetic · predicted for a100-80gb, 2.00 KiB"));
}

TEST_F(Timelines, ARangeSaysHowLongItIsAndWhatItChanges) {
  robot_.view.range = Range{1000, 5000};
  robot_.frames(2);
  // Two tensors are alive at its begin, three at its end.
  EXPECT_TRUE(robot_.says("4.00 µs, +1.00 KiB"));
  EXPECT_TRUE(robot_.says("1.000 µs"));
  EXPECT_TRUE(robot_.says("5.000 µs"));
  bool has_ground = false;
  for (const Drawn& shape : robot_.drawn().of_color(theme::accent))
    has_ground |= shape.alpha() == 36 && std::abs(shape.box.x0 - robot_.x_of(1000)) < 0.6F &&
                  std::abs(shape.box.x1 - robot_.x_of(5000)) < 0.6F;
  EXPECT_TRUE(has_ground);
  robot_.view.range = Range{5000, 8000};
  robot_.frames(2);
  EXPECT_TRUE(robot_.says("3.00 µs, −3.00 KiB"));
  robot_.view.range = Range{5000, 5100};  // too narrow for a label
  robot_.frames(2);
  EXPECT_FALSE(robot_.says("100 ns,"));
}

TEST_F(Timelines, LevelsNearTheCurveAreInThePicture) {
  const Drawing drawing = robot_.drawn();
  ASSERT_TRUE(drawing.says("arena 4.00 KiB"));
  // Dashes of half an em, every other one.
  std::size_t dashes = 0;
  for (const Drawn& dash : drawing.of_color(theme::faint))
    if (dash.alpha() == 200 && std::abs((dash.box.y0 + dash.box.y1) / 2 - curve_at(4096)) < 16)
      ++dashes;
  EXPECT_NEAR(static_cast<double>(dashes), (robot_.view.facts.right - robot_.view.facts.left) / 14,
              2);
}

TEST_F(Timelines, ACapacityWithinReachRaisesThePicture) {
  EXPECT_NEAR(robot_.view.facts.byte_top, 1.02 * 4096, 1);
  Recording recording = synthetic(4);
  recording.device = "nobody's";
  recording.capacity = Bytes{6 << 10};  // less than 1.6 of the peak
  robot_.open(recording);
  EXPECT_NEAR(robot_.view.facts.byte_top, 1.02 * 6144, 1);
  EXPECT_TRUE(robot_.says("capacity 6.00 KiB"));
  EXPECT_FALSE(robot_.drawn().mentions("above the picture"));
  recording.capacity = Bytes{7 << 10};  // more
  robot_.open(recording);
  EXPECT_NEAR(robot_.view.facts.byte_top, 1.02 * 4096, 1);
  EXPECT_TRUE(robot_.says("capacity 7.00 KiB: above the picture"));
}

TEST_F(Timelines, APartOfTheMemoryHasNoLevels) {
  robot_.view.curve.hides_persistent = true;
  robot_.frames(2);
  EXPECT_FALSE(robot_.says("arena 4"));
  EXPECT_FALSE(robot_.drawn().mentions("above the picture"));
}

TEST_F(Timelines, TheSelectedTensorsLifeIsABar) {
  select_buffer(robot_.shown(), BufferId{1}, robot_.view);
  robot_.frames(2);
  EXPECT_TRUE(robot_.says("block0.gelu1, 1.00 KiB"));
  bool has_life = false;
  for (const Drawn& shape : robot_.drawn().of_color(theme::bright))
    has_life |= shape.alpha() == 26 && std::abs(shape.box.x0 - robot_.x_of(1000)) < 0.6F &&
                std::abs(shape.box.x1 - robot_.x_of(6900)) < 0.6F;
  EXPECT_TRUE(has_life);
}

TEST_F(Timelines, WithoutMemoryItSaysSo) {
  Recording recording = of_tasks({Task::Forward, Task::Backward});
  recording.source = Source::Measured;
  robot_.open(std::move(recording));
  EXPECT_TRUE(robot_.says("no memory was recorded"));
  EXPECT_TRUE(robot_.says("no memory"));  // beside it, where there is little room
  EXPECT_EQ(robot_.view.facts.columns, 0u);
}

TEST_F(Timelines, BytesStandLeftOfTheirLines) {
  const Drawing drawing = robot_.drawn();
  // A tick of half a KiB each; the labels are in the middle of their lines.
  for (const auto& [text, bytes] : {std::pair{"1.0 KiB", 1024.0}, {"2.5 KiB", 2560.0}}) {
    const Drawn* tick = drawing.find(text);
    ASSERT_TRUE(tick) << text;
    EXPECT_LT(tick->box.x1, robot_.view.facts.left);
    EXPECT_NEAR((tick->box.y0 + tick->box.y1) / 2, curve_at(bytes) - 7, 9) << text;
  }
  const float one = drawing.find("1.0 KiB")->box.y0, two = drawing.find("2.0 KiB")->box.y0,
              three = drawing.find("3.0 KiB")->box.y0;
  EXPECT_NEAR(one - two, two - three, 1.1);
}

TEST_F(Timelines, AlignedTheAxisIsThatOfA) {
  compare_with(synthetic(2));
  EXPECT_FALSE(robot_.says("time of A"));
  robot_.press(Key::L);
  robot_.frames(2);
  EXPECT_TRUE(robot_.says("time of A"));
}

// Room goes to lanes and curve first: from 20, 18 and 16 letters on there are key, mini-map and
// legends.
TEST_F(Timelines, ALowWindowLeavesOutWhatIsLeastImportant) {
  const auto height = [&](int pixels) {
    robot_.size = {1000, pixels};
    robot_.frames(3);
  };
  height(800);
  EXPECT_TRUE(robot_.says("4.00 KiB live"));
  EXPECT_TRUE(robot_.says("forward"));
  height(330);  // below 24 letters there are no tabs: all of it is the timeline's
  EXPECT_FALSE(robot_.says("Live set"));
  height(275);
  EXPECT_FALSE(robot_.says("4.00 KiB live"));
  EXPECT_FALSE(robot_.drawn().count("forward"));
  EXPECT_TRUE(robot_.says("stream 0"));
}

TEST_F(Timelines, NotesAreMarkedAndNamedWhereTheyHaveRoom) {
  robot_.view.notes = {Note{.moment = 2000, .step = 8000, .text = "look"},
                       Note{.moment = 2010, .step = 8000, .text = "too near"},
                       Note{.moment = 4000, .step = 8000}};
  robot_.frames(2);
  EXPECT_EQ(robot_.view.facts.note_marks, 3u);
  const Drawing drawing = robot_.drawn();
  const Drawn* text = drawing.find("look");
  ASSERT_TRUE(text);
  EXPECT_NEAR(text->box.x0, robot_.x_of(2000) + 0.35F * 14 + 5, 1.5);
  EXPECT_FALSE(drawing.says("too near"));
  robot_.view.visible = {3000, 5000};
  robot_.frames(2);
  EXPECT_EQ(robot_.view.facts.note_marks, 1u);
}

TEST_F(Timelines, ANoteOfAShorterStepIsAtItsShareOfThisOne) {
  robot_.view.notes = {Note{.moment = 1000, .step = 4000, .text = "a quarter"}};
  robot_.frames(2);
  EXPECT_NEAR(robot_.drawn().find("a quarter")->box.x0, robot_.x_of(2000) + 0.35F * 14 + 5, 1.5);
}

}  // namespace
}  // namespace tidemark::gui::timeline_panel_test
