// Levers in the window: tried beside the drawing, looked at by hovering, pulled by clicks.
#include "gui/levers.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"

namespace tidemark::gui::levers_test {
namespace {

using testing::IsEmpty;

// 26.8 GiB where 23.1 are.
WhatIf short_of_memory() {
  return {.scenario = {.model = find_model("gpt2"),
                       .step = {.batch = 16},
                       .device = find_device("rtx-4090"),
                       .strategies = {}},
          .strategies = {parse_strategy("vanilla")}};
}

class LeversPanel : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(short_of_memory()); }

  const LeverTable& table() { return *robot_.model.levers().newest(); }
  const TriedLever& listed(std::size_t i) { return *lowering(table(), robot_.view.measure)[i]; }
  // In the row of the i-th that is listed.
  float row(std::size_t i) {
    const float height = 37;
    return std::floor(robot_.view.facts.first_lever + 10 + static_cast<float>(i) * height);
  }
  void collect(std::size_t i) {
    robot_.input.keys.insert(Key::Control);
    robot_.click(500, row(i));
    robot_.input.keys.erase(Key::Control);
    robot_.frames(2);
  }

  Robot robot_;
};

TEST_F(LeversPanel, ListsWhatTheCommandLineLists) {
  const LeverTable said = try_levers(short_of_memory().scenario, parse_strategy("vanilla"));
  const auto expected = lowering(said, Measure::Allocated);
  ASSERT_EQ(robot_.view.facts.levers, expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(listed(i).name, expected[i]->name);
    EXPECT_EQ(listed(i).report.allocated_peak, expected[i]->report.allocated_peak);
  }
}

TEST_F(LeversPanel, HoveringShowsTheCurve) {
  robot_.move(500, row(0));
  robot_.frames(3);
  EXPECT_EQ(robot_.model.imagines(), listed(0).name);
  ASSERT_TRUE(robot_.model.imagined());
  EXPECT_EQ(robot_.model.imagined()->report.allocated_peak, listed(0).report.allocated_peak);
  EXPECT_EQ(robot_.shown().trace().step.batch, 16);  // nothing was chosen
  robot_.move(700, 300);
  robot_.frames(2);
  EXPECT_EQ(robot_.model.imagines(), "");
}

TEST_F(LeversPanel, AClickPullsTheLever) {
  const Report expected = listed(0).report;
  robot_.click(500, row(0));
  EXPECT_EQ(robot_.model.problem(), "");
  EXPECT_EQ(robot_.model.report_of(0)->allocated_peak, expected.allocated_peak);
  EXPECT_EQ(robot_.model.report_of(0)->step, expected.step);
  EXPECT_EQ(table().now().allocated_peak, expected.allocated_peak);  // tried anew from there
}

// Every fifth, or the machine would try some 25 levers 25 times.
TEST_F(LeversPanel, LeversGiveWhatTheyPromise) {
  const std::vector<TriedLever> all = table().tried;
  for (std::size_t i = 2; i < all.size(); i += 5) {
    const TriedLever& lever = all[i];
    Robot robot;
    robot.ask(short_of_memory());
    robot.model.pull(lever.name, robot.view);
    robot.frames(3);
    EXPECT_EQ(robot.model.problem(), "") << lever.name;
    EXPECT_EQ(robot.model.report_of(0)->allocated_peak, lever.report.allocated_peak) << lever.name;
    EXPECT_EQ(robot.model.report_of(0)->step, lever.report.step) << lever.name;
  }
}

TEST_F(LeversPanel, CtrlCollects) {
  collect(0);
  collect(2);
  ASSERT_EQ(robot_.view.marked.size(), 2u);
  const std::vector<std::string> names = robot_.view.marked;
  EXPECT_EQ(robot_.shown().trace().step.batch, 16);
  robot_.move(700, 300);
  robot_.frames(3);
  ASSERT_TRUE(robot_.model.imagined());
  const Report together = robot_.model.imagined()->report;
  robot_.model.pull(names.front(), robot_.view);
  robot_.frames(2);
  EXPECT_EQ(robot_.model.report_of(0)->allocated_peak, together.allocated_peak);
  EXPECT_THAT(robot_.view.marked, IsEmpty());
}

TEST_F(LeversPanel, StrategiesJoin) {
  const std::vector<std::string> names = {"lowmemorybp", "lowmemorybp+checkpoint", "mesa"};
  const WhatIf joined = with(short_of_memory(), levers_named(table(), names));
  EXPECT_EQ(joined.strategies.front().text, "lowmemorybp+checkpoint+mesa");
  robot_.view.marked = {"reversible", "pareprop"};
  robot_.model.pull("reversible", robot_.view);
  EXPECT_NE(robot_.view.notice + robot_.model.problem(), "");
  EXPECT_EQ(robot_.model.report_of(0)->strategy, "vanilla");
}

TEST_F(LeversPanel, AllocatorSettingsAreTypedBesideOthers) {
  WhatIf what_if = short_of_memory();
  what_if.allocator = "max_split_size_mb:512";
  const std::vector<std::string> names = {"--alloc-conf expandable_segments:True"};
  EXPECT_EQ(with(what_if, levers_named(table(), names)).allocator,
            "max_split_size_mb:512,expandable_segments:True");
}

TEST(Levers, AreThoseOfTheLastQuestion) {
  Levers levers;
  LeverQuestion question{short_of_memory().scenario, parse_strategy("vanilla")};
  for (const std::int64_t batch : {1, 2, 4, 8}) {
    question.scenario.step.batch = batch;
    levers.ask(question);
  }
  levers.wait();
  ASSERT_TRUE(levers.newest());
  EXPECT_EQ(levers.newest()->comparison.scenario.step.batch, 8);
  EXPECT_EQ(levers.newest()->next, "");
}

TEST(Levers, EndWhileTheyAreTried) {
  Levers levers;
  levers.ask({short_of_memory().scenario, parse_strategy("vanilla")});
}

TEST(Levers, OfInputsWithoutAStepAreNone) {
  LeverQuestion question{short_of_memory().scenario, parse_strategy("vanilla")};
  question.scenario.step.sequence = 1 << 20;  // more than GPT-2 has positions
  Levers levers;
  levers.ask(question);
  levers.wait();
  EXPECT_FALSE(levers.newest());
}

}  // namespace
}  // namespace tidemark::gui::levers_test
