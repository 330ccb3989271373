// Two steps phase by phase on one axis: moments go there and back, and what is drawn, pointed at
// and read of B is what happens there.
#include "gui/time_map.h"

#include <gmock/gmock.h>

#include "gui/panels/timeline_parts.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::time_map_test {
namespace {

// The first 100 take 10 of the axis, the next 50 take 100 of it.
TimeMap two_parts() { return TimeMap({{0, 0}, {100, 10}, {150, 110}}); }

TEST(TimeMap, WithoutKnotsIsTheSameTime) {
  const TimeMap same;
  for (const double moment : {-7.0, 0.0, 12.5}) {
    EXPECT_EQ(same.to_axis(moment), moment);
    EXPECT_EQ(same.to_own(moment), moment);
  }
}

TEST(TimeMap, GoesStraightFromKnotToKnotAndAtItsOwnPaceBeyond) {
  for (const auto& [own, axis] :
       {std::pair(-5.0, -5.0), std::pair(0.0, 0.0), std::pair(50.0, 5.0), std::pair(100.0, 10.0),
        std::pair(125.0, 60.0), std::pair(150.0, 110.0), std::pair(157.0, 117.0)}) {
    EXPECT_DOUBLE_EQ(two_parts().to_axis(own), axis) << own;
    EXPECT_DOUBLE_EQ(two_parts().to_own(axis), own) << axis;
  }
}

TEST(TimeMap, VisitsThePartsThatAreVisibleEachAtItsPace) {
  std::vector<std::pair<Range, double>> parts;
  two_parts().visit({5, 60}, [&](Range part, double pace) { parts.emplace_back(part, pace); });
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].first, (Range{50, 100}));
  EXPECT_DOUBLE_EQ(parts[0].second, 10);
  EXPECT_EQ(parts[1].first, (Range{100, 125}));
  EXPECT_DOUBLE_EQ(parts[1].second, 0.5);
  parts.clear();
  two_parts().visit({-4, -1}, [&](Range part, double pace) { parts.emplace_back(part, pace); });
  two_parts().visit({200, 201}, [&](Range part, double pace) { parts.emplace_back(part, pace); });
  EXPECT_THAT(parts,
              testing::ElementsAre(std::pair(Range{-4, -1}, 1.0), std::pair(Range{240, 241}, 1.0)));
}

// Checkpointing has a longer backward than vanilla, and forward and optimizer of the same length.
class PhaseByPhase : public testing::Test {
 protected:
  void SetUp() override {
    robot_.ask(vit({"vanilla", "checkpoint"}));
    robot_.view.against = 1;
    robot_.view.aligns_phases = true;
    robot_.frames(2);
  }
  const Opened& a() const { return *robot_.model.recordings()[0].opened; }
  const Opened& b() const { return *robot_.model.recordings()[1].opened; }
  TimeMap map() const { return phase_by_phase(b(), a()); }

  Robot robot_;
};

TEST_F(PhaseByPhase, EachPhaseBeginsWhereItBegins) {
  ASSERT_EQ(a().phases().size(), 3u);
  ASSERT_EQ(b().phases().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(map().to_axis(b().phases()[i].range.begin), a().phases()[i].range.begin);
    EXPECT_DOUBLE_EQ(map().to_axis(b().phases()[i].range.end), a().phases()[i].range.end);
  }
  EXPECT_GT(b().phases()[1].range.span(), 1.1 * a().phases()[1].range.span());
}

TEST_F(PhaseByPhase, TheAxisIsThatOfA) {
  EXPECT_GT(b().end(), a().end());
  EXPECT_EQ(robot_.view.end, a().end());
  robot_.press(Key::L);
  EXPECT_FALSE(robot_.view.aligns_phases);
  robot_.frames(1);
  EXPECT_EQ(robot_.view.end, b().end());
  robot_.press(Key::L);
  EXPECT_TRUE(robot_.view.aligns_phases);
}

TEST_F(PhaseByPhase, NoRunIsDrawnTwiceOrLost) {
  const std::size_t all = a().timeline().runs.size() + b().timeline().runs.size();
  EXPECT_EQ(robot_.view.facts.runs, all);
  robot_.view.visible = {0.3 * robot_.view.end, 0.7 * robot_.view.end};
  robot_.frames(1);
  const std::size_t some = robot_.view.facts.runs;
  EXPECT_LT(some, all);
  EXPECT_GT(some, all / 4);
}

TEST_F(PhaseByPhase, WithoutAComparisonThereIsNothingToAlign) {
  robot_.view.against.reset();
  robot_.press(Key::L);
  EXPECT_TRUE(robot_.view.aligns_phases) << "a key of no use changed it";
  EXPECT_FALSE(robot_.model.aligns_phases(robot_.view));
}

// Two phases and one: only the ends are tied to each other.
TEST(PhasesThatDiffer, AreStretchedAsAWhole) {
  Recording forward_only = synthetic(4);
  forward_only.timeline.runs.resize(4);
  const Opened one(forward_only), other(synthetic(8));
  ASSERT_EQ(one.phases().size(), 1u);
  ASSERT_EQ(other.phases().size(), 2u);
  const TimeMap map = phase_by_phase(one, other);
  EXPECT_DOUBLE_EQ(map.to_axis(one.end()), other.end());
  EXPECT_DOUBLE_EQ(map.to_axis(one.end() / 4), other.end() / 4);
}

// A recorded run of several steps over a prediction of one: the first lies on it, what follows goes
// on at its own pace.
TEST(ManySteps, AreLaidOverEachOtherStepByStep) {
  const auto of = [](const std::vector<Task>& tasks) {
    return std::make_shared<const Opened>(of_tasks(tasks));
  };
  using enum Task;
  const auto predicted = of({Forward, Backward, Backward, Optimizer});
  const auto recorded = of({Forward, Forward, Backward, Optimizer, Forward, Backward, Optimizer});
  const TimeMap map = phase_by_phase(*recorded, *predicted);
  EXPECT_EQ(map.to_axis(200), 100);  // forward
  EXPECT_EQ(map.to_axis(300), 300);  // backward
  EXPECT_EQ(map.to_axis(400), 400);  // optimizer
  EXPECT_EQ(map.to_axis(550), 550);  // the second step
  const TimeMap back = phase_by_phase(*predicted, *recorded);
  EXPECT_EQ(back.to_axis(100), 200);
  EXPECT_EQ(back.to_axis(400), 400);
  // Not the same phases in the first step.
  const auto no_optimizer = of({Forward, Backward});
  EXPECT_EQ(phase_by_phase(*no_optimizer, *predicted).to_axis(200), 400);
  EXPECT_EQ(phase_by_phase(*no_optimizer, *predicted).to_axis(100), 200);
}

// What TimelinePlaces make of it, with 8 us of A on 800 pixels and 16 us of B over them.
class OneLaneOfB : public testing::Test {
 protected:
  OneLaneOfB() {
    places_.time = {{0, a_->end()}, 100, 900};
    places_.maps.emplace_back(b_.get(), phase_by_phase(*b_, *a_));
    places_.lanes = {{a_.get(), 0, {100, 0, 900, 10}}, {b_.get(), 0, {100, 20, 900, 30}}};
    places_.memory = {100, 40, 900, 90};
    for (const auto& one : {a_, b_})
      places_.curves.push_back(std::make_shared<const Bands>(one, CurveChoice{}, Range{0, 1}));
  }

  std::shared_ptr<const Opened> a_ = std::make_shared<const Opened>(synthetic(4));
  std::shared_ptr<const Opened> b_ = std::make_shared<const Opened>(synthetic(8));
  TimelinePlaces places_;
};

TEST_F(OneLaneOfB, IsPointedAtWhereItIsDrawn) {
  // Each run of B takes 1 us of 16: 50 pixels.
  for (std::uint32_t run = 0; run < 8; ++run) {
    const float x = 100 + 50 * static_cast<float>(run) + 20;
    EXPECT_FLOAT_EQ(places_.x_of(*b_, 1000.0 * run), 100 + 50 * static_cast<float>(run));
    const Hovered hovered = hovered_in(places_, {x, 25});
    ASSERT_TRUE(hovered.run) << run;
    EXPECT_EQ(index(*hovered.run), run);
  }
  EXPECT_EQ(hovered_in(places_, {120, 5}).run, RunId{0});
  EXPECT_EQ(hovered_in(places_, {220, 5}).run, RunId{1});  // of A: 100 pixels each
}

TEST_F(OneLaneOfB, ItsCurveIsHighestWhereItsForwardEnds) {
  EXPECT_EQ(b_->memory().total_of(state_under(places_, *b_, 499)), Bytes{8 << 10});
  EXPECT_EQ(b_->memory().total_of(state_under(places_, *b_, 120)), Bytes{1 << 10});
  EXPECT_EQ(a_->memory().total_of(state_under(places_, *a_, 120)), Bytes{1 << 10});
  EXPECT_EQ(a_->memory().total_of(state_under(places_, *a_, 499)), Bytes{4 << 10});
}

// The bracket says what its width does not say any more; the tooltip how much longer B takes.
TEST_F(PhaseByPhase, ATooltipComparesTheTimes) {
  const std::vector<std::string> lines = lines_of(a().phases()[1], robot_.model, robot_.view);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "backward");
  EXPECT_THAT(lines[1], testing::EndsWith(" % of the step"));
  EXPECT_THAT(lines[2], testing::StartsWith("B: "));
  EXPECT_EQ(
      lines[2],
      fmt::format("B: {}, {:.2f} times as long",
                  to_text(Nanoseconds{static_cast<std::int64_t>(b().phases()[1].range.span())}),
                  b().phases()[1].range.span() / a().phases()[1].range.span()));
}

TEST(ManySteps, ATooltipSaysWhichStepAndItsShareOfThat) {
  using enum Task;
  Robot robot;
  robot.open(of_tasks({Forward, Backward, Optimizer, Forward, Backward, Backward, Optimizer}));
  const std::vector<std::string> lines =
      lines_of(robot.shown().phases()[4], robot.model, robot.view);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "backward of step 2 of 2");
  EXPECT_THAT(lines[1], testing::EndsWith(", 50 % of the step"));
}

TEST_F(PhaseByPhase, APhaseIsFoundInItsRowAlone) {
  TimelinePlaces places;
  places.time = {{0, a().end()}, 0, 1000};
  places.phases = {0, 10, 1000, 20};
  for (const Phase& phase : a().phases()) {
    const auto x = static_cast<float>((phase.range.begin + phase.range.end) / 2 / a().end() * 1000);
    const Phase* found = phase_under(places, a(), {x, 15});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, phase.name);
    EXPECT_FALSE(phase_under(places, a(), {x, 25}));
  }
}

}  // namespace
}  // namespace tidemark::gui::time_map_test
