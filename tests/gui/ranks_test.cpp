// A pipeline in the window: the tightest class of ranks first, each to be shown, and the picture of
// their passes. Numbers are those of `compare`.
#include <gmock/gmock.h>

#include "analysis/comparison.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::ranks_test {
namespace {

WhatIf pipelined(std::int64_t stages = 4) {
  WhatIf what_if = vit({"vanilla"}, 1);
  what_if.scenario.model = find_model("gpt2");
  what_if.scenario.step.mesh[tidemark::Axis::Pipeline] = stages;
  what_if.scenario.step.accumulate.count = 6;
  return what_if;
}

class RanksTab : public testing::Test {
 protected:
  void SetUp() override {
    robot_.view.wanted_tab = Tab::Ranks;
    robot_.ask(pipelined());
  }
  const Ranks& ranks() const { return *robot_.model.ranks_of(robot_.view.shown); }
  Robot robot_;
};

TEST_F(RanksTab, ShowsTheTightestFirstAsCompareDoes) {
  Scenario scenario = pipelined().scenario;
  scenario.strategies = {parse_strategy("vanilla")};
  const Report expected = compare(scenario).rows.front();
  const Report& shown = *robot_.model.report_of(0);
  EXPECT_EQ(shown.rank, expected.rank);
  EXPECT_EQ(shown.allocated_peak, expected.allocated_peak);
  EXPECT_EQ(shown.reserved_peak, expected.reserved_peak);
  EXPECT_EQ(shown.step, expected.step);
  EXPECT_EQ(shown.bubble, expected.bubble);
  EXPECT_EQ(ranks().shown, ranks().tightest);
  EXPECT_EQ(robot_.view.facts.ranks, 4u);
  // What is drawn is that class's step.
  EXPECT_EQ(robot_.shown().memory().total_of(robot_.shown().peak()), expected.live_peak);
}

TEST_F(RanksTab, AClickShowsAClassAndUndoTheTightestAgain) {
  const std::size_t tightest = ranks().tightest;
  robot_.click(400, robot_.view.facts.first_rank + 24);  // the second
  ASSERT_TRUE(robot_.model.what_if()->scenario.step.rank);
  EXPECT_NE(ranks().shown, tightest);
  const Report& shown = *robot_.model.report_of(0);
  EXPECT_EQ(shown.rank->stage, static_cast<std::int64_t>(ranks().shown));
  EXPECT_LE(shown.allocated_peak, ranks().reports[tightest].allocated_peak);
  robot_.model.undo(robot_.view);
  robot_.frames(2);
  EXPECT_EQ(ranks().shown, tightest);
}

// Six micro-batches forward and backward on each of four stages; no pass before what it needs.
TEST_F(RanksTab, ThePictureHasAllPasses) {
  EXPECT_EQ(robot_.view.facts.passes, 2u * 6 * 4);
  for (std::size_t s = 0; s < 4; ++s) {
    const auto& passes = ranks().pipeline.passes[s];
    ASSERT_EQ(passes.size(), 12u);
    Nanoseconds busy{}, end{};
    for (const PipelinePass& pass : passes) {
      EXPECT_GE(pass.begin, end);
      end = pass.end, busy += pass.end - pass.begin;
      if (s == 0 || pass.action.work != StageWork::Forward) continue;
      const auto& before = ranks().pipeline.passes[s - 1];
      const auto sent = std::ranges::find_if(before, [&](const PipelinePass& other) {
        return other.action.work == StageWork::Forward &&
               other.action.micro_batch == pass.action.micro_batch;
      });
      ASSERT_NE(sent, before.end());
      EXPECT_LE(sent->end, pass.begin);
    }
    EXPECT_EQ(busy + ranks().pipeline.waits[s], ranks().pipeline.total);
  }
}

// Gradients of weights are passes of their own; what ends behind the first stage's last pass, where
// the next step begins already, is in the picture, too.
TEST_F(RanksTab, ThePictureHasBothHalvesOfBackwards) {
  WhatIf halves = pipelined();
  halves.scenario.step.schedule = parse_schedule("zb-h2");
  robot_.ask(halves);
  EXPECT_EQ(robot_.view.facts.passes, 3u * 6 * 4);
  const PipelineTimes& pipeline = ranks().pipeline;
  EXPECT_GE(pipeline.end, pipeline.total);
  for (const auto& passes : pipeline.passes) {
    ASSERT_EQ(passes.size(), 18u);
    EXPECT_EQ(passes.back().action.work, StageWork::Weights);
    EXPECT_LE(passes.back().end, pipeline.end);
  }
}

TEST_F(RanksTab, AShorterPipelineShowsWhatItHas) {
  robot_.model.show_rank(RankClass{3}, robot_.view);
  WhatIf shorter = *robot_.model.what_if();
  shorter.scenario.step.mesh[tidemark::Axis::Pipeline] = 2;
  robot_.model.ask(shorter, robot_.view);
  robot_.frames(2);
  EXPECT_EQ(robot_.model.problem(), "");
  EXPECT_EQ(ranks().shown, ranks().tightest);
  EXPECT_EQ(robot_.view.facts.ranks, 2u);
}

TEST_F(RanksTab, OneRankAloneHasNoSuchTab) {
  robot_.ask(pipelined(1));
  EXPECT_EQ(robot_.model.ranks_of(0), nullptr);
  EXPECT_EQ(robot_.view.facts.ranks, 0u);
}

}  // namespace
}  // namespace tidemark::gui::ranks_test
