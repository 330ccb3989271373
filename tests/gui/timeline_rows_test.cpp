// The rows of the timeline beside its lanes: phases, modules, the mini-map, and the arrows of what
// is selected, each at the pixels of its moments.
#include <gmock/gmock.h>

#include "tests/gui/laid_out.h"

namespace tidemark::gui::timeline_rows_test {
namespace {

// Soft edges begin half a pixel further in.
constexpr float soft = 1;

class PhaseRow : public WithFont {
 protected:
  Drawing draw(LaidOut& out) {
    Sheet sheet;
    draw_phases(sheet.list(), out.places, robot_.model, robot_.view);
    return sheet.drawing();
  }
};

TEST_F(PhaseRow, ABracketGoesFromTheFirstRunToThatOfTheNextPhase) {
  robot_.open(synthetic(4));  // forward to 4 µs, backward to 8
  LaidOut out(robot_.model.shown(robot_.view), {0, 8000});
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 2u);
  EXPECT_NEAR(drawing.shapes[0].box.x0, 100, soft);
  EXPECT_NEAR(drawing.shapes[0].box.x1, 598, soft);  // two pixels between them
  EXPECT_NEAR(drawing.shapes[1].box.x0, 600, soft);
  EXPECT_NEAR(drawing.shapes[1].box.x1, 1098, soft);
  EXPECT_NEAR(drawing.shapes[0].box.y0, 40, soft);
  EXPECT_NEAR(drawing.shapes[0].box.y1, 60, soft);
  ASSERT_EQ(drawing.texts.size(), 2u);
  EXPECT_EQ(drawing.texts[0].text, "forward");
  EXPECT_EQ(drawing.texts[0].box.x0, 105);
  EXPECT_EQ(drawing.texts[1].text, "backward");
}

TEST_F(PhaseRow, OnlyWhatIsVisibleIsDrawn) {
  robot_.open(synthetic(4));
  LaidOut out(robot_.model.shown(robot_.view), {4000, 6000});
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 1u);
  EXPECT_NEAR(drawing.shapes[0].box.x0, 100, soft);
  EXPECT_EQ(drawing.texts.at(0).text, "backward");
  out.places.phases.y1 = out.places.phases.y0;  // no room for the row
  EXPECT_TRUE(draw(out).shapes.empty());
}

TEST_F(PhaseRow, OfManyStepsThoseAreDrawnThatReachAFurtherPixel) {
  std::vector<Task> tasks;
  for (int step = 0; step < 100; ++step)
    for (const Task task : {Task::Forward, Task::Backward, Task::Optimizer}) tasks.push_back(task);
  robot_.open(of_tasks(tasks));                                // 300 phases of 100 ns
  LaidOut near(robot_.model.shown(robot_.view), {0, 30'000});  // 3.3 px each
  EXPECT_EQ(draw(near).shapes.size(), 300u);
  LaidOut far(robot_.model.shown(robot_.view), {0, 300'000});  // a third of a pixel each
  const std::size_t drawn = draw(far).shapes.size();
  EXPECT_GT(drawn, 40u);
  EXPECT_LE(drawn, 101u);  // of 100 pixels
}

TEST_F(PhaseRow, ThePhaseOfAMomentIsTheOneThatHasBegun) {
  const LaidOut out(synthetic(4), {0, 8000});
  const auto name = [&](ImVec2 mouse) {
    const Phase* phase = phase_under(out.places, *out.opened, mouse);
    return phase ? phase->name : "";
  };
  EXPECT_EQ(name({100, 50}), "forward");
  EXPECT_EQ(name({599, 50}), "forward");
  EXPECT_EQ(name({600, 50}), "backward");
  EXPECT_EQ(name({600, 39}), "");
  EXPECT_EQ(name({600, 60}), "");
  EXPECT_EQ(name({99, 50}), "");
}

// Forward and backward are 4 µs each of 8.
TEST_F(PhaseRow, ItsLinesSayHowLongAndWhichShare) {
  robot_.open(synthetic(4));
  const Opened& opened = robot_.shown();
  const auto lines = lines_of(opened.phases()[1], robot_.model, robot_.view);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "backward");
  EXPECT_EQ(lines[1], to_text(Nanoseconds{4000}) + ", 50 % of the step");
  robot_.open(synthetic(2));  // half as long
  robot_.view.shown = 0, robot_.view.against = 1;
  const auto compared = lines_of(opened.phases()[1], robot_.model, robot_.view);
  ASSERT_EQ(compared.size(), 3u);
  EXPECT_EQ(compared[2], "B: " + to_text(Nanoseconds{2000}) + ", 0.50 times as long");
}

TEST_F(PhaseRow, AlignedItNamesBothTimes) {
  robot_.open(synthetic(4));
  robot_.open(synthetic(2));
  robot_.view.shown = 0, robot_.view.against = 1, robot_.view.aligns_phases = true;
  LaidOut out(robot_.model.shown(robot_.view), {0, 8000});
  EXPECT_EQ(draw(out).texts.at(0).text,
            "forward: A " + to_text(Nanoseconds{4000}) + ", B " + to_text(Nanoseconds{2000}));
  robot_.view.aligns_phases = false;
  EXPECT_EQ(draw(out).texts.at(0).text, "forward");
}

// Two blocks of twenty ops: forward to 19.9 and 39.9 µs. Of the backward the first stream has every
// other run: the last ones of the blocks end at 58.9 and 78.9 µs.
class ModuleRow : public WithFont {
 protected:
  static Drawing draw(LaidOut& out) {
    Sheet sheet;
    draw_modules(sheet.list(), out.places, *out.opened, out.view);
    return sheet.drawing();
  }
};

TEST_F(ModuleRow, BlocksAreBoxesOfTwoShades) {
  LaidOut out(synthetic(40), {0, 80'000});
  const Drawing drawing = draw(out);
  ASSERT_EQ(drawing.shapes.size(), 4u);
  const std::array<std::pair<float, float>, 4> places = {
      {{0, 19.9F}, {20, 39.9F}, {40, 58.9F}, {60, 78.9F}}};  // µs, of 12.5 px
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(drawing.shapes[i].box.x0, 100 + 12.5F * places[i].first, soft) << i;
    EXPECT_NEAR(drawing.shapes[i].box.x1, 100 + 12.5F * places[i].second - 1, soft) << i;
  }
  EXPECT_TRUE(drawing.shapes[0].has_color(theme::line));
  EXPECT_TRUE(drawing.shapes[1].has_color(theme::folded));
  EXPECT_TRUE(drawing.shapes[2].has_color(theme::folded));
  EXPECT_TRUE(drawing.shapes[3].has_color(theme::line));
  EXPECT_EQ(drawing.shapes[0].alpha(), 255u);
  ASSERT_EQ(drawing.texts.size(), 4u);
  EXPECT_EQ(drawing.texts[0].text, "block0");
  EXPECT_EQ(drawing.texts[2].text, "block1");
}

TEST_F(ModuleRow, TheSelectedBlockAndThatOfTheSelectedOpAreBright) {
  for (const Selection& selection :
       {Selection{.block = 1}, Selection{.op = static_cast<OpId>(25)}}) {
    LaidOut out(synthetic(40), {0, 80'000});
    out.view.selection = selection;
    const Drawing drawing = draw(out);
    ASSERT_EQ(drawing.shapes.size(), 4u);
    EXPECT_FALSE(drawing.shapes[0].has_color(theme::accent));
    EXPECT_TRUE(drawing.shapes[1].has_color(theme::accent));
    EXPECT_TRUE(drawing.shapes[2].has_color(theme::accent));
    EXPECT_FALSE(drawing.shapes[3].has_color(theme::accent));
  }
}

// 18 em are 252 px. In the middle is the backward of block 1, of 18.9 µs.
TEST_F(ModuleRow, WideBlocksShowWhatIsInThem) {
  LaidOut just_not(synthetic(40), {0, 76'000});  // 249 px
  just_not.places.time.range = {2500, 78'500};
  EXPECT_EQ(draw(just_not).texts.at(0).text, "block0");
  LaidOut wide(synthetic(40), {30'000, 70'000});  // 472 px
  const Drawing drawing = draw(wide);
  EXPECT_FALSE(drawing.says("block1"));
  EXPECT_GT(drawing.shapes.size(), 10u);
  const Module* inner = module_under(wide.places, *wide.opened, {100 + 25 * 0.5F, 70});
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->name, "block1.gelu10");  // 30.5 µs: the 31st op
}

TEST_F(ModuleRow, NarrowOnesAreFoldedAndFaintAndHaveNoName) {
  LaidOut out(synthetic(40), {0, 20'000'000});  // 20 µs are one pixel
  const Drawing drawing = draw(out);
  ASSERT_FALSE(drawing.shapes.empty());
  EXPECT_LT(drawing.shapes.size(), 4u);
  EXPECT_EQ(drawing.shapes[0].alpha(), 110u);
  EXPECT_TRUE(drawing.texts.empty());
}

TEST_F(ModuleRow, TheMouseFindsAModuleButNotBetweenThem) {
  const LaidOut out(synthetic(40), {0, 80'000});
  const auto at = [&](double microsecond, float y = 70) {
    const float x = 100 + static_cast<float>(12.5 * microsecond);
    const Module* module = module_under(out.places, *out.opened, {x, y});
    return module ? module->name : "";
  };
  EXPECT_EQ(at(0), "block0");
  EXPECT_EQ(at(19.8), "block0");
  EXPECT_EQ(at(19.95), "");
  EXPECT_EQ(at(20.1), "block1");
  EXPECT_EQ(at(59.5), "");
  EXPECT_EQ(at(79.5), "");
  EXPECT_EQ(at(10, 59), "");
  EXPECT_EQ(at(10, 80), "");
}

TEST_F(ModuleRow, OneModuleAloneIsNoRow) {
  EXPECT_FALSE(has_modules(Opened(of_tasks({Task::Forward}))));
  EXPECT_TRUE(has_modules(Opened(synthetic(40))));
  LaidOut out(synthetic(40), {0, 80'000});
  out.places.modules.y1 = out.places.modules.y0;
  EXPECT_TRUE(draw(out).shapes.empty());
}

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
}  // namespace tidemark::gui::timeline_rows_test
