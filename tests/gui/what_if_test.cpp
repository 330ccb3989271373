// Changed inputs show the command line's prediction in the same view; failures keep the picture.
#include "gui/what_if.h"

#include <gmock/gmock.h>

#include "analysis/recording/predicted_recording.h"
#include "simulator/plan_json.h"
#include "tests/gui/robot.h"
#include "traces/trace_builder.h"

namespace tidemark::gui::what_if_test {
namespace {

TEST(WhatIf, PredictsWhatTheCommandLineWould) {
  const WhatIf what_if = vit({"checkpoint:every=2"}, 32);
  const auto predictions = predict(what_if);
  ASSERT_EQ(predictions.size(), 1u);
  Scenario scenario = what_if.scenario;
  scenario.strategies = {parse_strategy("checkpoint:every=2")};
  const Report expected = compare(scenario).rows.front();
  EXPECT_EQ(predictions[0].report.allocated_peak, expected.allocated_peak);
  EXPECT_EQ(predictions[0].report.step, expected.step);
  const Opened& opened = *predictions[0].opened;
  EXPECT_EQ(opened.memory().total_of(opened.peak()), expected.live_peak);
}

TEST(WhatIf, AChangeOfInputsKeepsWhatCanBeKept) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  const double end = robot.shown().end();
  robot.view.visible = {0.25 * end, 0.5 * end};
  const OpId gelu{static_cast<OpId>(
      std::ranges::find(robot.shown().trace().ops, "blocks.7.mlp.gelu", &Op::name) -
      robot.shown().trace().ops.begin())};
  select_op(gelu, robot.view);
  robot.model.ask(vit({"mesa"}, 16), robot.view);
  const double now = robot.shown().end();
  EXPECT_GT(now, end);
  EXPECT_NEAR(robot.view.visible.begin, 0.25 * now, 1);
  EXPECT_EQ(robot.shown().trace()[robot.view.selection.op].name, "blocks.7.mlp.gelu");
  EXPECT_EQ(robot.view.cursor, robot.shown().peak());  // it was at the peak, and still is
}

TEST(WhatIf, WhatDoesNotApplyIsSaidAndThePictureStays) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  const auto before = robot.model.shown(robot.view);
  robot.model.ask(vit({"reversible+checkpoint"}), robot.view);
  EXPECT_THAT(robot.model.problem(), testing::HasSubstr("does not apply"));
  EXPECT_EQ(robot.model.shown(robot.view), before);
  WhatIf odd = vit({"vanilla"});
  odd.scenario.step.image = 100;  // no multiple of the patch
  robot.model.ask(odd, robot.view);
  EXPECT_NE(robot.model.problem(), "");
  EXPECT_EQ(robot.model.shown(robot.view), before);
  robot.frames(2);
  robot.model.ask(vit({"mesa"}), robot.view);
  EXPECT_EQ(robot.model.problem(), "");
}

// What one model was asked with may be no head, size or length that another can have.
TEST(WhatIf, AnotherModelIsAskedWithItsOwnHeadAndLengths) {
  WhatIf headed = vit({"vanilla"}, 1), written = headed;
  headed.scenario.model = find_model("gpt2");
  headed.scenario.step.sequence = 64, headed.scenario.step.head = Head::SequenceClassification;
  written.scenario.model = find_model("t5-base");
  written.scenario.step.sequence = 64, written.scenario.step.target_sequence = 32;
  for (const WhatIf& asked : {headed, written}) {
    Robot robot;
    robot.ask(asked);
    robot.click(142, 86);   // the list of models
    robot.click(142, 170);  // one of its first
    const Scenario& now = robot.model.what_if()->scenario;
    EXPECT_EQ(now.model.name, "vit-l-16");
    EXPECT_EQ(now.step, vit({"vanilla"}, 1).scenario.step);
    EXPECT_EQ(robot.model.problem(), "");
    EXPECT_EQ(robot.shown().trace().model, now.model.name);
  }
}

// Of a plan the panel offers no options, and a model that it does not fit leaves the picture.
TEST(WhatIf, APlanIsChosenAsAStrategyIs) {
  const WhatIf mesa = vit({"mesa"});
  const auto trace = trace_of(mesa.scenario);
  const StrategySpec plan =
      read_plan(write_plan(plan_step(trace, mesa.strategies.front())), "tuned.plan.json");
  WhatIf what_if = vit({"vanilla"});
  what_if.plans = {plan}, what_if.strategies.push_back(plan);
  EXPECT_EQ(offered(what_if).back().text, "plan:tuned");
  Robot robot;
  robot.ask(what_if);
  EXPECT_EQ(robot.model.report_of(1)->strategy, "plan:tuned");
  EXPECT_EQ(robot.model.report_of(1)->allocated_peak, predict(mesa)[0].report.allocated_peak);
  robot.model.wait();
  EXPECT_EQ(robot.model.levers().newest()->comparison.rows.back().strategy, "plan:tuned");
  const auto before = robot.model.shown(robot.view);
  what_if.scenario.model = find_model("swin-t");
  robot.model.ask(what_if, robot.view);
  EXPECT_THAT(robot.model.problem(), testing::HasSubstr("swin-t has no tensor"));
  EXPECT_EQ(robot.model.shown(robot.view), before);
}

TEST(WhatIf, TwoStrategiesAreTwoRecordings) {
  Robot robot;
  robot.ask(vit({"vanilla", "pareprop"}));
  ASSERT_EQ(robot.model.recordings().size(), 2u);
  EXPECT_EQ(robot.model.recordings()[1].opened->recording.strategy, "pareprop");
  EXPECT_EQ(robot.view.shown, 0u);  // the first one
  robot.view.against = 1;
  robot.view.wanted_tab = Tab::Compare;
  robot.frames(3);
  ASSERT_TRUE(robot.model.newest_diff(robot.view).newest());
  EXPECT_FALSE(robot.model.newest_diff(robot.view).newest()->numbers.is_empty());
  robot.model.ask(vit({"vanilla"}), robot.view);
  EXPECT_EQ(robot.model.recordings().size(), 1u);
  EXPECT_FALSE(robot.view.against);
  robot.frames(2);
}

TEST(WhatIf, WhatIsKeptStaysAsItIs) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  robot.press(Key::K);
  ASSERT_EQ(robot.model.recordings().size(), 2u);
  const auto kept = robot.model.recordings()[1].opened;
  robot.model.ask(vit({"vanilla"}, 64), robot.view);
  EXPECT_EQ(robot.model.recordings()[1].opened, kept);
  EXPECT_EQ(robot.model.against(robot.view), kept.get());
  EXPECT_NE(robot.model.recordings()[0].opened, kept);
}

TEST(WhatIf, ASliderChangesThePictureInTheSameFrame) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 1));
  const auto before = robot.model.recordings()[0].opened;
  // The batch slider is the second input of the panel at the left; its right end is the most.
  for (float y = 60; y < 160 && robot.model.what_if()->scenario.step.batch == 1; y += 8)
    robot.click(232, y);  // left of the buttons for a step down and up
  EXPECT_GT(robot.model.what_if()->scenario.step.batch, 1000);
  EXPECT_NE(robot.model.recordings()[0].opened, before);
  EXPECT_EQ(robot.shown().trace().step.batch, robot.model.what_if()->scenario.step.batch);
}

// A file that is dropped is shown instead of the prediction, whose inputs stay beside it.
TEST(WhatIf, AChangeOfInputsShowsTheirPredictionAgain) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 1));
  robot.open(robot.shown().recording);
  ASSERT_EQ(robot.view.shown, 1u);
  for (float y = 60; y < 300 && robot.view.shown == 1; y += 8) robot.click(240, y);
  EXPECT_EQ(robot.view.shown, 0u);
}

TEST(WhatIf, TheAllocatorIsAsked) {
  WhatIf what_if = vit({"vanilla"}, 64);
  const Report usual = predict(what_if).front().report;
  what_if.allocator = "expandable_segments:True";
  const Report expandable = predict(what_if).front().report;
  EXPECT_LT(expandable.reserved_peak, usual.reserved_peak);
  EXPECT_TRUE(scenario_of(what_if).allocator.expandable_segments);
}

// Half a word is no setting: it is told, and the picture stays.
TEST(WhatIf, WhatIsBeingTypedIsNoError) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  const auto before = robot.model.shown(robot.view);
  WhatIf what_if = *robot.model.what_if();
  what_if.allocator = "expandable_seg";
  robot.model.ask(what_if, robot.view);
  EXPECT_THAT(robot.model.problem(), testing::HasSubstr("expandable_seg"));
  EXPECT_EQ(robot.model.shown(robot.view), before);
  EXPECT_EQ(robot.model.what_if()->allocator, "expandable_seg");
}

}  // namespace
}  // namespace tidemark::gui::what_if_test
