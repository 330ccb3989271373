// Runs become boxes at the pixels of their moments, what is too narrow is folded, and the mouse
// finds what is drawn under it.
#include <gmock/gmock.h>

#include "tests/gui/laid_out.h"

namespace tidemark::gui::lanes_test {
namespace {

using testing::ElementsAre;

class Lanes : public WithFont {
 protected:
  static Drawing draw(LaidOut& out) {
    Sheet sheet;
    draw_lane(sheet.list(), out.places, out.places.lanes.front(), out.view);
    return sheet.drawing();
  }
  static std::vector<Color> colors_of(const Drawing& drawing) {
    std::vector<Color> colors;
    for (const Drawn& shape : drawing.shapes)
      colors.push_back({static_cast<std::uint8_t>(shape.ink),
                        static_cast<std::uint8_t>(shape.ink >> 8),
                        static_cast<std::uint8_t>(shape.ink >> 16)});
    return colors;
  }
  /// Runs of one nanosecond, one every other nanosecond.
  static Recording blinking(std::uint32_t runs) {
    Recording recording = of_tasks(std::vector(runs, Task::Forward));
    for (std::uint32_t i = 0; i < runs; ++i) {
      recording.timeline.runs[i].begin = Nanoseconds{2 * i};
      recording.timeline.runs[i].end = Nanoseconds{2 * i + 1};
    }
    recording.timeline.duration = Nanoseconds{2 * runs};
    return recording;
  }
};

TEST_F(Lanes, ARunIsABoxFromItsBeginToItsEndLessAPixelOfGround) {
  LaidOut out(of_tasks({Task::Forward, Task::Backward}), {0, 1000});  // a nanosecond is a pixel
  out.view.color_by = ColorBy::Task;
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 2u);
  const Box& first = drawing.shapes[0].box;
  EXPECT_EQ(first.x0, 100);
  EXPECT_EQ(first.x1, 199);
  EXPECT_EQ(first.y0, 100);
  EXPECT_EQ(first.y1, 118);
  EXPECT_EQ(drawing.shapes[1].box.x0, 200);
  EXPECT_EQ(drawing.shapes[1].box.x1, 299);
  EXPECT_THAT(colors_of(drawing), ElementsAre(color_of(Task::Forward), color_of(Task::Backward)));
  EXPECT_EQ(out.view.facts.cells, 2u);
  EXPECT_EQ(out.view.facts.runs, 2u);
}

// Two pixels beyond the axis are enough to be cut off by it; boxes do not grow with the zoom.
TEST_F(Lanes, WhatReachesBeyondTheAxisIsCut) {
  LaidOut out(of_tasks({Task::Forward, Task::Backward, Task::Backward}), {50, 250});
  const Drawing drawing = draw(out);  // five pixels a nanosecond
  ASSERT_EQ(drawing.shapes.size(), 3u);
  EXPECT_EQ(drawing.shapes[0].box.x0, 98);
  EXPECT_EQ(drawing.shapes[0].box.x1, 349);  // 100 ns are 50 after the left edge: 100 + 5 · 50
  EXPECT_EQ(drawing.shapes[2].box.x0, 850);
  EXPECT_EQ(drawing.shapes[2].box.x1, 1101);
}

// Three pixels are a cell. From 0 on: runs at 0 and 2, which end within it; the run at 4 alone,
// because the next begins behind 6; the runs at 6 and 8; and so on.
TEST_F(Lanes, NarrowNeighboursAreOneCellAsBrightAsItIsBusy) {
  LaidOut out(blinking(6), {0, 1000});
  out.view.color_by = ColorBy::Task;
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 4u);
  const Color forward = color_of(Task::Forward);
  // Two of three nanoseconds are busy: 0.25 + 0.75 · 2/3.
  const Color folded =
      mixed(theme::plot, mixed(forward, theme::folded, 0.35), 0.25 + 0.75 * (2.0 / 3));
  EXPECT_THAT(colors_of(drawing), ElementsAre(folded, forward, folded, forward));
  EXPECT_EQ(drawing.shapes[0].box.x0, 100);
  EXPECT_EQ(drawing.shapes[0].box.x1, 103);  // no pixel to spare
  EXPECT_EQ(drawing.shapes[1].box.x0, 104);
  EXPECT_EQ(drawing.shapes[1].box.x1, 105);
  EXPECT_EQ(out.view.facts.cells, 4u);
  EXPECT_EQ(out.view.facts.runs, 6u);
}

TEST_F(Lanes, TheLongestRunGivesACellItsColor) {
  Recording recording = of_tasks({Task::Forward, Task::Backward, Task::Forward});
  recording.timeline.runs[0].begin = Nanoseconds{0},
  recording.timeline.runs[0].end = Nanoseconds{10};
  recording.timeline.runs[1].begin = Nanoseconds{10};
  recording.timeline.runs[1].end = Nanoseconds{25};
  recording.timeline.runs[2].begin = Nanoseconds{25};
  recording.timeline.runs[2].end = Nanoseconds{30};
  LaidOut out(std::move(recording), {0, 100'000});  // a pixel is 100 ns
  out.view.color_by = ColorBy::Task;
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 1u);
  EXPECT_THAT(
      colors_of(drawing),
      ElementsAre(mixed(theme::plot, mixed(color_of(Task::Backward), theme::folded, 0.35), 1)));
  EXPECT_EQ(drawing.shapes[0].box.x1, 101);  // at least a pixel wide
}

TEST_F(Lanes, RecoveryHasALowerEdgeWhereColorsMeanKinds) {
  LaidOut out(of_tasks({Task::Recompute, Task::Forward}), {0, 1000});
  const Drawing by_kind = draw(out);
  ASSERT_EQ(by_kind.shapes.size(), 3u);
  EXPECT_TRUE(by_kind.shapes[1].has_color(color_of(Task::Recompute)));
  EXPECT_FLOAT_EQ(by_kind.shapes[1].box.y0, 118 - 0.3F * 14);
  EXPECT_EQ(by_kind.shapes[1].box.y1, 118);
  EXPECT_EQ(by_kind.shapes[1].box.x1, 199);
  out.places.lanes[0].box.y1 = 106;  // in a low lane a third of it
  EXPECT_FLOAT_EQ(draw(out).shapes[1].box.y0, 104);
  out.view.color_by = ColorBy::Task;
  EXPECT_EQ(draw(out).shapes.size(), 2u);
}

TEST_F(Lanes, WhatIsRecoveryIsKnown) {
  for (const Task task : {Task::Recompute, Task::Reconstruct, Task::Quantize, Task::Dequantize}) {
    LaidOut out(of_tasks({task}), {0, 1000});
    EXPECT_EQ(draw(out).shapes.size(), 2u) << to_string(task);
  }
  for (const Task task : {Task::Forward, Task::Backward, Task::Optimizer, Task::AllReduce}) {
    LaidOut out(of_tasks({task}), {0, 1000});
    EXPECT_EQ(draw(out).shapes.size(), 1u) << to_string(task);
  }
}

TEST_F(Lanes, NamesLeaveOutTheBlock) {
  LaidOut out(synthetic(2), {0, 4000});  // 4 px a µs · 250: runs of 225 px
  Drawing drawing = draw(out);
  ASSERT_EQ(drawing.texts.size(), 3u);  // the fourth run is on the other stream
  EXPECT_EQ(drawing.texts[0].text, "gelu0");
  EXPECT_EQ(drawing.texts[1].text, "gelu1");
  EXPECT_EQ(drawing.texts[0].box.x0, 104);
  LaidOut tasks(of_tasks({Task::Optimizer}), {0, 100});
  EXPECT_EQ(draw(tasks).texts.at(0).text, "optimizer");
}

TEST_F(Lanes, NarrowAndLowBoxesHaveNoNames) {
  LaidOut out(of_tasks({Task::Forward}), {0, 2800});  // 100 ns are 35 px: less than 2 em + 8
  EXPECT_TRUE(draw(out).texts.empty());
  LaidOut wide(of_tasks({Task::Forward}), {0, 1000});
  EXPECT_FALSE(draw(wide).texts.empty());
  wide.places.lanes[0].box.y1 = 110;  // 9 px of text in 10 px: no
  EXPECT_TRUE(draw(wide).texts.empty());
}

TEST_F(Lanes, OtherBlocksThanTheSelectedAreDim) {
  LaidOut out(synthetic(40), {0, 80'000});
  out.view.selection.block = 1;  // the runs 20 to 39 of the forward, 40 to 59 of the backward
  const Drawing drawing = draw(out);
  const Color activation = kind_classes[static_cast<std::size_t>(KindClass::Activation)].color;
  ASSERT_GT(drawing.shapes.size(), 40u);
  EXPECT_TRUE(drawing.shapes[0].has_color(mixed(theme::plot, activation, 0.3)));
  EXPECT_TRUE(drawing.shapes[19].has_color(mixed(theme::plot, activation, 0.3)));
  EXPECT_TRUE(drawing.shapes[20].has_color(activation));
  EXPECT_TRUE(drawing.shapes[39].has_color(activation));
  // Of another class of ranks the block of that number is another one.
  out.places.lanes[0].stage = 1;
  EXPECT_TRUE(draw(out).shapes[0].has_color(activation));
}

TEST_F(Lanes, AllRunsOfTheSelectedOpAreMarkedAndTheOneBrightly) {
  LaidOut out(synthetic(4), {0, 8000});  // eighth of a pixel a ns: runs at 125 px
  out.view.selection = {.run = RunId{1}, .op = static_cast<OpId>(1)};
  const Drawing drawing = draw(out);
  // Forward at 1 µs; its backward is run 6, on stream 0 as all even ones are.
  EXPECT_EQ(out.view.facts.marks, 2u);
  const auto others = drawing.of_color(theme::accent), one = drawing.of_color(theme::bright);
  ASSERT_EQ(others.size(), 1u);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_NEAR(others[0].box.x0, 100 + 6 * 125 - 1, 1.5);
  EXPECT_NEAR(others[0].box.x1, 100 + 6 * 125 + 112.5 + 1, 1.5);
  EXPECT_NEAR(one[0].box.x0, 225 - 1, 2);
  EXPECT_NEAR(one[0].box.x1, 225 + 112.5 + 1, 2);
  EXPECT_NEAR(one[0].box.y0, 99, 2);
  EXPECT_NEAR(one[0].box.y1, 119, 2);
}

TEST_F(Lanes, MarksBeyondTheAxisAreNotCounted) {
  LaidOut out(synthetic(4), {2000, 5000});
  out.view.selection = {.run = RunId{1}, .op = static_cast<OpId>(1)};
  draw(out);
  EXPECT_EQ(out.view.facts.marks, 0u);  // at 1 and at 6 µs
  out.view.facts = {};
  out.places.time.range = {1500, 5000};  // the first is half in sight
  draw(out);
  EXPECT_EQ(out.view.facts.marks, 1u);
}

TEST_F(Lanes, TheMouseFindsTheRunUnderIt) {
  LaidOut out(synthetic(4), {0, 8000});
  const Hovered second = hovered_in(out.places, {230, 105});
  ASSERT_TRUE(second.lane);
  EXPECT_EQ(second.run, RunId{1});
  EXPECT_EQ(second.cell.first, 1u);
  EXPECT_EQ(second.cell.last, 2u);
  // 900 of 1000 ns are run: from 112.5 to 125 px nothing is.
  EXPECT_EQ(hovered_in(out.places, {100 + 112, 105}).run, RunId{0});
  const Hovered between = hovered_in(out.places, {100 + 113, 105});
  EXPECT_TRUE(between.lane);
  EXPECT_FALSE(between.run);
  // The other lane has runs 5 and 7.
  EXPECT_EQ(hovered_in(out.places, {100 + 5 * 125 + 1, 125}).run, RunId{5});
  EXPECT_FALSE(hovered_in(out.places, {100 + 6 * 125 + 1, 125}).run);
  EXPECT_FALSE(hovered_in(out.places, {99, 105}).lane);   // left of the axis
  EXPECT_FALSE(hovered_in(out.places, {230, 119}).lane);  // between the lanes
}

TEST_F(Lanes, OfAFoldedCellTheMouseFindsTheLongest) {
  Recording recording = blinking(6);
  recording.timeline.runs[1].end += Nanoseconds{1};  // [2, 4): longer than [0, 1)
  LaidOut out(std::move(recording), {0, 10'000});    // a tenth of a pixel: a cell is 30 ns
  const Hovered hovered = hovered_in(out.places, {100, 105});
  EXPECT_EQ(hovered.run, RunId{1});
  EXPECT_EQ(hovered.cell.count(), 6u);
  EXPECT_EQ(hovered_in(out.places, {101, 105}).run, RunId{1});  // to 11 ns: 1.1 px
  EXPECT_FALSE(hovered_in(out.places, {102, 105}).run);
}

TEST_F(Lanes, ColorsMeanKindsOrTasks) {
  const Opened opened(synthetic(2));
  const Color activation = kind_classes[static_cast<std::size_t>(KindClass::Activation)].color;
  EXPECT_EQ(color_of(opened, RunId{0}, ColorBy::Kind), activation);
  EXPECT_EQ(color_of(opened, RunId{3}, ColorBy::Kind), activation);
  EXPECT_EQ(color_of(opened, RunId{0}, ColorBy::Task), color_of(Task::Forward));
  EXPECT_EQ(color_of(opened, RunId{3}, ColorBy::Task), color_of(Task::Backward));
  const Opened tasks(of_tasks({Task::Optimizer}));
  EXPECT_EQ(color_of(tasks, RunId{0}, ColorBy::Kind), kind_colors.back());
}

// A copy of what the first run makes, on a stream of its own.
Recording with_copy() {
  Recording recording = synthetic(2);
  recording.schedule.streams = 3;
  const auto step = static_cast<std::uint32_t>(recording.schedule.steps.size());
  recording.schedule.steps.emplace_back(CopyOut{BufferId{0}, StreamId{2}});
  recording.timeline.runs.push_back({step, StreamId{2}, Nanoseconds{1000}, Nanoseconds{1500}});
  return recording;
}

std::vector<std::string> names_of(const std::vector<KeyEntry>& key) {
  std::vector<std::string> names;
  for (const KeyEntry& entry : key) names.push_back(entry.text);
  return names;
}

TEST_F(Lanes, TheKeyNamesWhatOccursAndNothingElse) {
  const Opened copies(with_copy());
  EXPECT_THAT(names_of(color_key(copies, ColorBy::Kind)), ElementsAre("activation", "copy"));
  EXPECT_THAT(names_of(color_key(copies, ColorBy::Task)),
              ElementsAre("forward", "backward", "copy"));
  EXPECT_EQ(color_key(copies, ColorBy::Task).back().swatch, copy_color);
  EXPECT_EQ(color_of(copies, RunId{4}, ColorBy::Kind), copy_color);
  const Opened tasks(of_tasks({Task::Forward, Task::Recompute, Task::Quantize, Task::Optimizer}));
  const auto key = color_key(tasks, ColorBy::Kind);
  EXPECT_THAT(names_of(key), ElementsAre("optimizer", "recompute", "quantize"));
  EXPECT_FALSE(key[0].is_edge);
  EXPECT_TRUE(key[1].is_edge);
  EXPECT_THAT(names_of(color_key(tasks, ColorBy::Task)),
              ElementsAre("forward", "recompute", "quantize", "optimizer"));
}

TEST_F(Lanes, ACopyIsNamedSo) {
  LaidOut out(with_copy(), {0, 4000});
  out.places.lanes.erase(out.places.lanes.begin(), out.places.lanes.begin() + 2);
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 1u);
  EXPECT_TRUE(drawing.shapes[0].has_color(copy_color));
  EXPECT_EQ(drawing.texts.at(0).text, "copy");
  EXPECT_EQ(drawing.shapes[0].box.x0, 350);
  EXPECT_EQ(drawing.shapes[0].box.x1, 474);
}

// The axis has the first half of its phases stretched to twice: what is drawn there is as well.
TEST_F(Lanes, FollowTheMapOfTheirMoments) {
  LaidOut out(of_tasks({Task::Forward, Task::Backward}), {0, 1000});
  out.places.maps.emplace_back(out.opened.get(), TimeMap({{0, 0}, {100, 200}, {200, 300}}));
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 2u);
  EXPECT_EQ(drawing.shapes[0].box.x1, 299);
  EXPECT_EQ(drawing.shapes[1].box.x0, 300);
  EXPECT_EQ(drawing.shapes[1].box.x1, 399);
  EXPECT_EQ(hovered_in(out.places, {290, 105}).run, RunId{0});
  EXPECT_EQ(hovered_in(out.places, {310, 105}).run, RunId{1});
  EXPECT_EQ(out.view.facts.runs, 2u);  // each once
}

}  // namespace
}  // namespace tidemark::gui::lanes_test
