// Every panel draws whatever a recording can be, and clicks in one panel show in the others.
#include <gmock/gmock.h>

#include "gui/newest_diff.h"
#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"
#include "traces/trace_builder.h"

namespace tidemark::gui::panels_test {
namespace {

Trace one_op() {
  TraceBuilder b("one op", "toy", {.precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  const TensorId x = b.input("x", {4, 8}, DType::Float32);
  Trace trace = b.finish(b.gelu("gelu", x));
  trace.tensors[0].trainable = true;
  return trace;
}

// A step in which nothing happens, of a device that nobody knows.
Recording nothing() {
  Recording recording;
  recording.source = Source::Measured;
  recording.device = "unknown";
  recording.trace = std::make_shared<const Trace>();
  return recording;
}

void draw_all_tabs(Robot& robot) {
  for (const auto& [tab, name] : tab_names) {
    robot.view.wanted_tab = tab;
    robot.frames(3);
    EXPECT_FALSE(robot.view.wanted_tab) << name;  // opened, or not offered in this window
  }
}

// Details, front and what-if stand at the sides of a wide window, and are tabs of a narrow one.
TEST(Panels, WhatHasNoRoomAtTheSidesIsATab) {
  for (const int width : {1280, 700}) {
    Robot robot({width, 800});
    robot.ask(vit({"vanilla"}));
    for (const auto& [tab, name] : tab_names) {
      robot.view.wanted_tab = tab;
      robot.frames(3);
      const bool is_beside =
          width == 1280 && (tab == Tab::Details || tab == Tab::WhatIf || tab == Tab::Front);
      if (tab == Tab::Ranks) continue;  // of a pipeline
      if (tab == Tab::Notes || tab == Tab::Recordings || tab == Tab::Baseline)
        continue;  // once there are some
      EXPECT_EQ(robot.view.tab == tab, !is_beside) << name << " at " << width;
    }
  }
}

TEST(Panels, NotesAndRecordingsAreTabsOnceThereAreSome) {
  Robot robot;
  robot.ask(vit({"vanilla", "checkpoint"}));
  robot.press(Key::B);
  robot.view.wanted_tab = Tab::Notes;
  robot.frames(3);
  EXPECT_EQ(robot.view.tab, Tab::Notes);
  EXPECT_EQ(robot.view.facts.notes, 1u);
  robot.view.wanted_tab = Tab::Recordings;
  robot.frames(3);
  EXPECT_EQ(robot.view.tab, Tab::Recordings);
  EXPECT_EQ(robot.view.facts.recordings, 2u);
  robot.click(400, robot.view.facts.first_recording + 5 + 20);  // the second row
  EXPECT_EQ(robot.view.shown, 1u);
}

TEST(Panels, DrawNothingAtAll) {
  Robot robot;
  robot.frames(3);
  robot.press(Key::F);
  robot.press(Key::Slash);
  robot.press(Key::K);
  EXPECT_TRUE(robot.model.is_empty());
}

TEST(Panels, DrawAnEmptyRecording) {
  Robot robot;
  robot.open(nothing());
  draw_all_tabs(robot);
  robot.click(robot.middle(), robot.curve());
  robot.press(Key::Period);
  robot.press(Key::R);
  robot.drag(0, robot.middle(), robot.middle() + 100, robot.curve());
  EXPECT_EQ(robot.view.facts.cells, 0u);
}

TEST(Panels, DrawOneOp) {
  Robot robot;
  robot.open(recorded(one_op(), "vanilla"));
  draw_all_tabs(robot);
  EXPECT_GT(robot.view.facts.cells, 0u);
  EXPECT_EQ(robot.view.facts.runs, robot.shown().timeline().runs.size());
}

// What says how far the numbers can be believed is read before them.
TEST(Panels, ACautionIsInSight) {
  Robot robot({1280, 700});
  robot.ask(vit({"mesa"}));
  ASSERT_NE(robot.model.report_of(0)->caution, "");
  EXPECT_GT(robot.view.facts.caution, 0);
  EXPECT_LT(robot.view.facts.caution, 690);
}

// Labels stand where the curve is not.
TEST(Panels, LabelsDoNotHideTheCurve) {
  for (const auto& strategies :
       {std::vector<std::string>{"vanilla"}, {"pareprop"}, {"pareprop", "vanilla"}, {"mesa"}}) {
    Robot robot;
    robot.ask(vit(strategies, 64));
    if (strategies.size() > 1) robot.view.against = 1;
    robot.frames(2);
    EXPECT_LT(robot.view.facts.covered, 40) << strategies.front();
  }
}

TEST(Panels, DrawInAnySize) {
  for (const PixelSize size : {smallest_picture, PixelSize{480, 700}, PixelSize{3000, 400}}) {
    for (const float scale : {0.5F, 1.0F, 2.0F}) {
      Robot robot(size, scale);
      robot.ask(vit({"pareprop", "vanilla"}));
      robot.view.against = 1;
      draw_all_tabs(robot);
      robot.press(Key::Slash);
      robot.press(Key::Escape);
      robot.view.shows_help = true;
      robot.frames(3);
      const Image image = robot.stage.picture();
      EXPECT_EQ(image.width, size.width);
      EXPECT_EQ(image.height, size.height);
    }
  }
}

TEST(Panels, AClickInTheListSelectsTheTensorEverywhere) {
  Robot robot;
  robot.ask(vit({"checkpoint"}));
  robot.view.wanted_tab = Tab::LiveSet;
  robot.view.groups_blocks = false;
  robot.frames(3);
  robot.click(450, 640);
  ASSERT_TRUE(robot.view.selection.buffer);
  EXPECT_TRUE(robot.shown().buffers().is_alive(*robot.view.selection.buffer, robot.view.cursor));
  EXPECT_EQ(robot.view.selection.op, robot.shown().home_of(*robot.view.selection.buffer));
}

TEST(Panels, AClickInTheIcicleSelectsABlock) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  robot.view.wanted_tab = Tab::Icicle;
  robot.frames(3);
  robot.click(800, 690);
  EXPECT_GE(robot.view.selection.block, 0);
}

TEST(Panels, AClickOnAnAddressSelectsWhatIsThere) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  robot.view.wanted_tab = Tab::Addresses;
  robot.frames(3);
  robot.click(700, 660);
  ASSERT_TRUE(robot.view.selection.buffer);
  const Range before = robot.view.addresses;
  robot.turn(4);
  EXPECT_LT(robot.view.addresses.span(), before.span());
}

std::shared_ptr<const Opened> opened(const Trace& trace) {
  return std::make_shared<const Opened>(recorded(trace, "vanilla"));
}

TEST(Comparison, OfTheSameIsAllEqual) {
  NewestDiff looking;
  const auto a = opened(one_op()), b = opened(one_op());
  looking.look(a, b);
  EXPECT_TRUE(looking.is_catching_up() || !looking.newest());
  looking.wait();
  looking.look(a, b);
  ASSERT_TRUE(looking.newest());
  EXPECT_TRUE(looking.newest()->numbers.is_empty());
}

// A measured step beside its prediction: the window says why it needs more.
TEST(Comparison, OfMeasuredAndPredictedSaysWhatNobodyPredicted) {
  const Recording predicted = predict(vit({"vanilla"})).front().opened->recording;
  Recording measured = predicted;
  measured.source = Source::Measured;
  measured.schedule.buffers.push_back(
      {.size = {3 << 20}, .category = Category::Workspace, .persistent = true});
  measured.timeline.baseline[static_cast<std::size_t>(Category::Workspace)] += Bytes{3 << 20};
  measured.offsets.clear();
  const std::string expected =
      "measured, with all workspaces: 3.00 MiB more than predicted: 3.00 MiB (";
  EXPECT_TRUE(diff_of(predicted, measured).headline.starts_with(expected));
  // Whichever of the two is shown.
  EXPECT_TRUE(diff_of(measured, predicted).headline.starts_with(expected));
  Robot robot;
  robot.open(measured);
  robot.open(predicted);
  robot.view.against = 0;
  robot.view.wanted_tab = Tab::Compare;
  robot.frames(5);
  EXPECT_TRUE(robot.view.facts.headline.starts_with(expected)) << robot.view.facts.headline;
}

// While another pair is looked at, the last answer stays; then the new one replaces it.
TEST(Comparison, FollowsWhatIsComparedWithWhat) {
  const auto made = predict(vit({"vanilla", "mesa"}));
  NewestDiff looking;
  looking.look(made[0].opened, made[0].opened);
  looking.wait();
  looking.look(made[0].opened, made[1].opened);
  ASSERT_TRUE(looking.newest());
  EXPECT_TRUE(looking.newest()->numbers.is_empty());
  looking.wait();
  looking.look(made[0].opened, made[1].opened);
  EXPECT_EQ(looking.newest()->numbers.after, made[1].opened->name);
  EXPECT_FALSE(looking.newest()->numbers.is_empty());
}

// The panel lists what `tidemark diff` lists, and a click on a category marks it everywhere.
TEST(Comparison, AClickOnARowSelectsWhatItIsAbout) {
  Robot robot;
  robot.ask(vit({"vanilla", "mesa"}));
  robot.view.against = 1;
  robot.view.wanted_tab = Tab::Compare;
  robot.frames(4);
  // Below the headline and what it is made of.
  for (float y = 600; y < 790 && !robot.view.selection.category; y += 9) robot.click(400, y);
  EXPECT_EQ(robot.view.selection.category, Category::Activation);  // the largest change
}

}  // namespace
}  // namespace tidemark::gui::panels_test
