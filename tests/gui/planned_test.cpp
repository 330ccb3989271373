// A plan as a choice of strategy: the slider moves along the front, and the timeline follows.
#include "gui/planned.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"

namespace tidemark::gui::planned_test {
namespace {

using testing::StartsWith;

Bytes device_memory(const WhatIf& what_if) { return memory_budget_of(what_if.scenario).capacity; }

WhatIf planned_vit(std::int64_t batch = 8) {
  WhatIf what_if = vit({"vanilla"}, batch);
  what_if.planned = PlanChoice{device_memory(what_if)};
  return what_if;
}

// Half of what all budgets of the front reach over.
Bytes middle_of(const PlannedFront& front) {
  return front.points[front.points.size() / 2].point.budget;
}

TEST(Planned, ThePlanOfTheBudgetTakesThePlaceOfTheStrategy) {
  Robot robot;
  robot.ask(planned_vit());
  const auto front = robot.model.planned().newest();
  ASSERT_TRUE(front);
  ASSERT_GT(front->points.size(), 10u);
  EXPECT_THAT(robot.model.report_of(0)->strategy, StartsWith("plan:"));
  // All of the device is enough to keep everything.
  EXPECT_NEAR(front->points.back().slowdown, 1, 1e-3);
  EXPECT_EQ(robot.model.report_of(0)->step, front->points.back().point.report.step);
}

TEST(Planned, TheTimelineFollowsAlongTheFrontAtOnce) {
  Robot robot;
  robot.ask(planned_vit());
  const auto front = robot.model.planned().newest();
  const auto before = robot.model.shown(robot.view);
  robot.model.move_along_front(middle_of(*front), robot.view);
  EXPECT_NE(robot.model.shown(robot.view), before);      // no frame was needed
  EXPECT_FALSE(robot.model.planned().is_catching_up());  // nor another front
  const Report& report = *robot.model.report_of(0);
  EXPECT_LE(report.allocated_peak, middle_of(*front));
  EXPECT_EQ(report.step, front->points[front->points.size() / 2].point.report.step);
  EXPECT_GT(robot.shown().end(), before->end());
  const Opened& shown = robot.shown();
  EXPECT_EQ(shown.memory().total_of(shown.peak()), report.live_peak);
}

TEST(Planned, EachPointIsWhatItsReportSays) {
  Robot robot;
  robot.ask(planned_vit());
  const auto front = robot.model.planned().newest();
  for (std::size_t i = 0; i < front->points.size(); i += 5) {
    robot.model.move_along_front(front->points[i].point.budget, robot.view);
    EXPECT_EQ(robot.model.report_of(0)->allocated_peak,
              front->points[i].point.report.allocated_peak);
    EXPECT_EQ(robot.model.report_of(0)->strategy, front->points[i].plan.text);
  }
  // Below all of them: the smallest.
  robot.model.move_along_front(Bytes{1}, robot.view);
  EXPECT_EQ(robot.model.report_of(0)->strategy, front->points.front().plan.text);
}

// The front of other inputs comes later; what is asked is shown before, with what is known.
TEST(Planned, AChangeOfInputsDoesNotWaitForItsFront) {
  Robot robot;
  robot.ask(planned_vit(8));
  const auto front = robot.model.planned().newest();
  robot.model.move_along_front(middle_of(*front), robot.view);
  WhatIf changed = *robot.model.what_if();
  changed.scenario.step.batch = 16;
  robot.model.ask(changed, robot.view);
  EXPECT_EQ(robot.model.problem(), "");
  EXPECT_EQ(robot.shown().trace().step.batch, 16);
  robot.frames(2);  // waits for it
  EXPECT_NE(robot.model.planned().newest(), front);
  const Bytes budget = robot.model.what_if()->planned->budget;
  EXPECT_EQ(budget, middle_of(*front));
  EXPECT_LE(robot.model.report_of(0)->allocated_peak, budget);
}

// The old plan says nothing about another model: everything is kept until there is a new one.
TEST(Planned, AnotherModelGetsAPlanOfItsOwn) {
  Robot robot;
  robot.ask(planned_vit());
  WhatIf changed = *robot.model.what_if();
  changed.scenario.model = find_model("swin-t");
  robot.model.ask(changed, robot.view);
  EXPECT_EQ(robot.model.problem(), "");
  EXPECT_EQ(robot.shown().trace().model, "swin-t");
  robot.frames(2);
  EXPECT_EQ(robot.model.problem(), "");
  EXPECT_THAT(robot.model.report_of(0)->strategy, StartsWith("plan:"));
}

TEST(Planned, MoreFreedomMovesTheFront) {
  Robot robot;
  WhatIf what_if = planned_vit();
  robot.ask(what_if);
  const auto exact = robot.model.planned().newest();
  what_if.planned->allowed = Allowed::Lossy;
  robot.ask(what_if);
  const auto lossy = robot.model.planned().newest();
  const Bytes budget = middle_of(*exact);
  EXPECT_LT(lossy->points[lossy->within(budget)].slowdown,
            exact->points[exact->within(budget)].slowdown);
}

TEST(Planned, NothingOffloadsWhereTheLinkIsUnknown) {
  Robot robot;
  WhatIf what_if = planned_vit();
  what_if.scenario.device.host_link_bytes_per_second = 0;
  what_if.planned->allowed = Allowed::Offload;
  robot.ask(what_if);
  EXPECT_FALSE(robot.model.planned().newest());
  EXPECT_EQ(robot.model.report_of(0)->strategy, "vanilla");
}

TEST(Planned, TheSliderIsDragged) {
  Robot robot;
  robot.ask(planned_vit());
  const float y = std::floor(robot.view.facts.plan_slider);
  ASSERT_GT(y, 0);
  const Bytes before = robot.model.report_of(0)->allocated_peak;
  robot.drag(0, 240, 8, y);  // to the left of its beginning
  EXPECT_LT(robot.model.report_of(0)->allocated_peak, before);
  EXPECT_EQ(robot.model.what_if()->planned->budget,
            robot.model.planned().newest()->points.front().point.budget);
}

TEST(Planned, AStrategyTakesItsPlaceAgain) {
  Robot robot;
  robot.ask(planned_vit());
  robot.ask(vit({"mesa"}));
  EXPECT_EQ(robot.view.facts.plan_slider, 0);
  EXPECT_EQ(robot.model.report_of(0)->strategy, "mesa");
}

TEST(Planned, InputsWithoutAStepLeaveThePicture) {
  Robot robot;
  robot.ask(planned_vit());
  const auto before = robot.model.shown(robot.view);
  WhatIf odd = *robot.model.what_if();
  odd.scenario.step.image = 100;  // no multiple of the patch
  robot.model.ask(odd, robot.view);
  EXPECT_NE(robot.model.problem(), "");
  EXPECT_EQ(robot.model.shown(robot.view), before);
  robot.frames(2);
}

}  // namespace
}  // namespace tidemark::gui::planned_test
