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

// The 31st op runs forward at 30 µs; its backward is on the second stream.
TEST_F(ModuleRow, CloseUpTheModuleOfTheSelectedOpIsBright) {
  LaidOut out(synthetic(40), {30'000, 70'000});
  out.view.selection.op = static_cast<OpId>(30);
  const auto bright = draw(out).of_color(theme::accent);
  ASSERT_EQ(bright.size(), 1u);
  EXPECT_NEAR(bright[0].box.x0, 100, soft);
  EXPECT_NEAR(bright[0].box.x1, 100 + 0.9F * 25 - 1, soft);  // 25 px a µs
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

}  // namespace
}  // namespace tidemark::gui::timeline_rows_test
