// The mini-map, and the arrows of what is selected, at the pixels of their moments.
#include <gmock/gmock.h>

#include "tests/gui/laid_out.h"

namespace tidemark::gui::map_and_arrows_test {
namespace {

// 8320 ns with their margins on 1000 px: 0.1202 px a ns, and the step begins 160 ns from the left.
class MiniMap : public WithFont {
 protected:
  static float x_of(double moment) { return static_cast<float>(100 + (moment + 160) / 8.32); }
  static Drawing draw(LaidOut& out) {
    out.view.end = 8000;
    Sheet sheet;
    draw_mini_map(sheet.list(), out.places, *out.opened, out.view);
    return sheet.drawing();
  }
};

TEST_F(MiniMap, HasAColumnForEveryOtherPixelOfTheStep) {
  LaidOut out(synthetic(4), {0, 8000});
  out.view.visible = {2000, 4000};
  const Drawing drawing = draw(out);
  const auto columns = drawing.of_color(mixed(theme::plot, theme::faint, 0.6));
  ASSERT_EQ(columns.size(), 481u);  // from 119 to 1081
  EXPECT_EQ(columns.front().box.x0, 119);
  EXPECT_EQ(columns.front().box.x1, 121);
  EXPECT_EQ(columns.back().box.x0, 1079);
  // A KiB of four at first: a quarter of 30 px. All of them where the peak is, nothing at the end.
  EXPECT_FLOAT_EQ(columns.front().box.y0, 456 - 7.5F);
  EXPECT_EQ(columns.front().box.y1, 456);
  EXPECT_FLOAT_EQ(columns[(481 - 119) / 2].box.y0, 426);
  EXPECT_FLOAT_EQ(columns.back().box.y0, 456);
}

TEST_F(MiniMap, MarksThePeakAndDarkensWhatIsNotVisible) {
  LaidOut out(synthetic(4), {0, 8000});
  out.view.visible = {2000, 4000};
  const Drawing drawing = draw(out);
  const auto peak = drawing.of_color(theme::bright);
  ASSERT_EQ(peak.size(), 1u);
  EXPECT_EQ(peak[0].box.x0, std::floor(x_of(3000)));
  EXPECT_EQ(peak[0].box.x1, std::floor(x_of(3000)) + 2);
  EXPECT_EQ(peak[0].box.y0, 424);
  const auto dark = drawing.of_color(theme::ground);
  ASSERT_EQ(dark.size(), 2u);
  EXPECT_EQ(dark[0].box.x0, 100);
  EXPECT_NEAR(dark[0].box.x1, x_of(2000), 0.01);
  EXPECT_NEAR(dark[1].box.x0, x_of(4000), 0.01);
  EXPECT_EQ(dark[1].box.x1, 1100);
  EXPECT_EQ(dark[0].alpha(), 150u);
  const auto frame = drawing.of_color(theme::accent);
  ASSERT_EQ(frame.size(), 1u);
  EXPECT_NEAR(frame[0].box.x0, x_of(2000), 1.5);
  EXPECT_NEAR(frame[0].box.x1, x_of(4000), 1.5);
}

TEST_F(MiniMap, AMomentThatIsLookedAtCloselyIsStillThreePixelsWide) {
  LaidOut out(synthetic(4), {0, 8000});
  out.view.visible = {2000, 2001};
  const auto dark = draw(out).of_color(theme::ground);
  ASSERT_EQ(dark.size(), 2u);
  EXPECT_NEAR(dark[1].box.x0 - dark[0].box.x1, 3, 0.01);
}

class Relations : public WithFont {
 protected:
  static Drawing draw(LaidOut& out) {
    Sheet sheet;
    draw_relations(sheet.list(), out.places, *out.opened, out.view);
    return sheet.drawing();
  }
  /// One run that writes `buffers` tensors of 1, 2, 3, … KiB, and one that reads them all.
  static Recording fan(std::uint32_t buffers) {
    Recording recording = of_tasks({Task::Forward, Task::Backward});
    for (std::uint32_t b = 0; b < buffers; ++b) {
      recording.schedule.buffers.push_back({.size = {1024 * (b + 1)}});
      recording.schedule.operands.push_back(BufferId{b});
    }
    recording.schedule.steps = {
        tidemark::Run{Task::Forward, StreamId::Compute, no_op, 0, 0, buffers},
        tidemark::Run{Task::Backward, StreamId::Compute, no_op, 0, buffers, 0}};
    return recording;
  }
  /// One run that writes a tensor, and as many that read it.
  static Recording readers(std::uint32_t count) {
    Recording recording = of_tasks(std::vector(count + 1, Task::Forward));
    recording.schedule.buffers.push_back({.size = {1024}});
    recording.schedule.operands.push_back(BufferId{0});
    for (std::uint32_t i = 0; i <= count; ++i)
      recording.schedule.steps[i] = tidemark::Run{Task::Forward,    StreamId::Compute, no_op, 0,
                                                  i == 0 ? 0U : 1U, i == 0 ? 1U : 0U};
    return recording;
  }
};

// Run 1 is at 1 to 1.9 µs; its tensor is read for the last time by run 6, at 6 to 6.9.
TEST_F(Relations, AnArrowGoesFromTheWriterToTheLastReader) {
  LaidOut out(synthetic(4), {0, 8000});
  select_run(*out.opened, RunId{1}, out.view);
  const Drawing drawing = draw(out);
  const float from = 100 + 1450 / 8.0F, to = 100 + 6450 / 8.0F;
  const auto parts = drawing.of_color(color_of(Category::Activation));
  ASSERT_EQ(parts.size(), 3u);  // the path, its tip, its foot
  EXPECT_NEAR(parts[0].box.x0, from, 2);
  EXPECT_NEAR(parts[0].box.x1, to, 2);
  EXPECT_NEAR(parts[0].box.y0, 118, 2);                // the lower edge of the lane
  EXPECT_NEAR(parts[0].box.y1, 220 + 0.9F * 14, 2.5);  // its lowest
  EXPECT_NEAR((parts[1].box.x0 + parts[1].box.x1) / 2, to, 0.6);
  EXPECT_NEAR(parts[1].box.y0, 118, 1.1);
  EXPECT_NEAR((parts[2].box.x0 + parts[2].box.x1) / 2, from, 0.6);
  ASSERT_EQ(drawing.texts.size(), 1u);
  const Drawn& label = drawing.texts[0];
  EXPECT_EQ(label.text, out.opened->describe(BufferId{1}) + ", " + to_text(Bytes{1024}));
  EXPECT_NEAR((label.box.x0 + label.box.x1) / 2, (from + to) / 2, 1);
}

// Run 2's tensor is read by run 5, on the second stream, whose lane ends at 138.
TEST_F(Relations, AnArrowEndsAtTheLaneOfItsRun) {
  LaidOut out(synthetic(4), {0, 8000});
  select_run(*out.opened, RunId{2}, out.view);
  const auto parts = draw(out).of_color(color_of(Category::Activation));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_NEAR((parts[1].box.x0 + parts[1].box.x1) / 2, 100 + 5450 / 8.0F, 0.6);
  EXPECT_NEAR(parts[1].box.y0, 138, 1.1);
  EXPECT_NEAR((parts[2].box.y0 + parts[2].box.y1) / 2, 118, 0.6);  // from the first
}

TEST_F(Relations, OfATensorTheyNameWhoReadsIt) {
  LaidOut out(synthetic(4), {0, 8000});
  select_buffer(*out.opened, BufferId{1}, out.view);
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.texts.size(), 1u);
  EXPECT_EQ(drawing.texts[0].text, out.opened->describe(RunId{6}));
}

TEST_F(Relations, WithoutASelectionThereAreNone) {
  LaidOut out(synthetic(4), {0, 8000});
  EXPECT_TRUE(draw(out).shapes.empty());
  select_run(*out.opened, RunId{6}, out.view);  // a backward writes nothing here
  EXPECT_TRUE(draw(out).shapes.empty());
}

// Their feet are kept near the axis, and the label where it can be read.
TEST_F(Relations, BeyondTheAxisTheyEndJustOutside) {
  LaidOut out(synthetic(4), {3000, 4000});
  select_run(*out.opened, RunId{1}, out.view);
  const Drawing drawing = draw(out);
  const auto parts = drawing.of_color(color_of(Category::Activation));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_NEAR(parts[0].box.x0, 100 - 4 * 14, 2);
  EXPECT_NEAR(parts[0].box.x1, 1100 + 4 * 14, 2);
  EXPECT_NEAR((drawing.texts.at(0).box.x0 + drawing.texts.at(0).box.x1) / 2, 600, 1);
}

TEST_F(Relations, UpToFourHaveLabelsTheLargestFirst) {
  LaidOut four(fan(4), {0, 200});
  four.view.selection.run = RunId{0};
  const Drawing drawing = draw(four);
  ASSERT_EQ(drawing.texts.size(), 4u);
  EXPECT_TRUE(drawing.texts[0].text.ends_with(to_text(Bytes{4096}))) << drawing.texts[0].text;
  EXPECT_TRUE(drawing.texts[3].text.ends_with(to_text(Bytes{1024})));
  EXPECT_NEAR(drawing.texts[1].box.y0 - drawing.texts[0].box.y0, 1.6F * 14, 1);
  LaidOut five(fan(5), {0, 200});
  five.view.selection.run = RunId{0};
  const Drawing unnamed = draw(five);
  EXPECT_TRUE(unnamed.texts.empty());
  EXPECT_EQ(unnamed.of_color(color_of(Category::Activation)).size(), 15u);
}

TEST_F(Relations, BeyondTwelveTheRestIsCounted) {
  LaidOut twelve(fan(12), {0, 200});
  twelve.view.selection.run = RunId{0};
  EXPECT_TRUE(draw(twelve).texts.empty());
  LaidOut out(fan(14), {0, 200});
  out.view.selection.run = RunId{0};
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.texts.size(), 1u);
  EXPECT_EQ(drawing.texts[0].text, "12 of 14 arrows, the largest tensors");
  EXPECT_EQ(drawing.of_color(color_of(Category::Activation)).size(), 36u);
  LaidOut uses(readers(14), {0, 1500});
  uses.view.selection.buffer = BufferId{0};
  EXPECT_EQ(draw(uses).texts.at(0).text, "the first 12 of 14 uses");
}

}  // namespace
}  // namespace tidemark::gui::map_and_arrows_test
