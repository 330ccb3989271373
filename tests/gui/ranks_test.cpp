// A pipeline in the window: the tightest class of ranks first, each to be shown, and the picture of
// their passes. Numbers are those of `compare`.
#include <gmock/gmock.h>

#include "analysis/comparison.h"
#include "gui/panels/timeline_parts.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

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

// One group of lanes for each class: the one that is shown, then the others, the tightest first.
TEST_F(RanksTab, AllClassesHaveTheirLanesOnOneAxis) {
  EXPECT_EQ(robot_.view.facts.rank_lanes, 3u);
  std::size_t runs = 0;
  for (const auto& step : ranks().steps) {
    EXPECT_EQ(step->end(), robot_.shown().end());
    runs += step->timeline().runs.size();
  }
  EXPECT_EQ(robot_.view.facts.runs, runs);
  EXPECT_EQ(robot_.view.end, static_cast<double>(robot_.model.report_of(0)->step.count()));
  const std::vector<std::size_t> order = tightest_first(ranks());
  EXPECT_EQ(order.front(), ranks().tightest);
  for (std::size_t i = 1; i < order.size(); ++i)
    EXPECT_GE(ranks().reports[order[i - 1]].allocated_peak,
              ranks().reports[order[i]].allocated_peak);
}

TEST_F(RanksTab, AClickInALaneShowsItsClass) {
  const std::size_t second = tightest_first(ranks())[1];
  robot_.click(robot_.middle(), robot_.view.facts.first_rank_lane + 4);
  ASSERT_TRUE(robot_.model.what_if()->scenario.step.rank);
  EXPECT_EQ(ranks().shown, second);
  EXPECT_EQ(&robot_.shown(), ranks().steps[second].get());
  EXPECT_EQ(robot_.view.facts.rank_lanes, 3u);
}

TEST_F(RanksTab, ALaneSaysWhoseItIsAndWhatItNeeds) {
  const Report& report = ranks().reports[2];
  const std::string line = line_of(ranks(), 2);
  EXPECT_THAT(line, testing::StartsWith("pp2: " + to_text(report.allocated_peak) + " allocated, "));
  EXPECT_THAT(line, testing::HasSubstr(report.fits ? ", fits," : ", does not fit,"));
}

// A class that needs more than there is comes first, whatever the others need.
TEST(TightestFirst, WhatDoesNotFitComesBeforeWhatNeedsMore) {
  Ranks ranks;
  ranks.reports.resize(3);
  const auto set = [&](std::size_t i, std::int64_t bytes, bool fits) {
    ranks.reports[i].allocated_peak = Bytes{bytes}, ranks.reports[i].fits = fits;
  };
  set(0, 10, true), set(1, 5, false), set(2, 20, true);
  EXPECT_THAT(tightest_first(ranks), testing::ElementsAre(1, 2, 0));
}

class RankLanes : public testing::Test {
 protected:
  RankLanes() {
    ranks_.shown = 1;
    for (std::int64_t i = 0; i < 5; ++i) {
      ranks_.reports.emplace_back();
      ranks_.reports.back().allocated_peak = Bytes{i};
      ranks_.steps.push_back(std::make_shared<const Opened>(synthetic(4)));  // two streams
    }
    places_.em = 14;
  }
  Ranks ranks_;
  TimelinePlaces places_;
};

TEST_F(RankLanes, ShareTheRoomThatThereIs) {
  const float end = place_rank_lanes(ranks_, 100, 90, places_);
  ASSERT_EQ(places_.lanes.size(), 8u);  // four classes that are not shown
  EXPECT_EQ(places_.ranks_without_room, 0u);
  EXPECT_LE(end, 190);
  EXPECT_EQ(places_.lanes.front().stage, 4u);
  EXPECT_EQ(places_.lanes.back().stage, 0u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(places_.lanes[i].box.height(), 9);  // (90 - 4 · 2) / 8, without a pixel between them
    if (i == 0) continue;
    EXPECT_GT(places_.lanes[i].box.y0, places_.lanes[i - 1].box.y1);
  }
}

TEST_F(RankLanes, AreNotHigherThanAFont) {
  place_rank_lanes(ranks_, 0, 1000, places_);
  EXPECT_FLOAT_EQ(places_.lanes.front().box.height(), 1.2F * 14);
}

// Two lanes of 3 pixels with one below each, and two before them: 10 for each class. Below that
// only the first stream of each, 4 pixels.
TEST_F(RankLanes, AreOfTheFirstStreamWhereThereIsLittleRoom) {
  place_rank_lanes(ranks_, 100, 40, places_);
  EXPECT_EQ(places_.lanes.size(), 8u);
  EXPECT_EQ(places_.lanes.front().box.height(), 3);
  EXPECT_EQ(places_.lanes.front().box.y0, 102);
  TimelinePlaces low;
  low.em = 14;
  EXPECT_LE(place_rank_lanes(ranks_, 100, 39, low), 139);
  ASSERT_EQ(low.lanes.size(), 4u);
  EXPECT_EQ(low.ranks_without_room, 0u);
  EXPECT_EQ(low.lanes.front().box.height(), 8);
  for (const auto& lane : low.lanes) EXPECT_EQ(lane.stream, 0u);
}

TEST_F(RankLanes, AreLeftOutWhereTheyCouldNotBeToldApart) {
  EXPECT_LE(place_rank_lanes(ranks_, 100, 11, places_), 111);
  EXPECT_EQ(places_.lanes.size(), 2u);
  EXPECT_EQ(places_.ranks_without_room, 2u);
  EXPECT_EQ(places_.lanes.back().stage, 3u);
  TimelinePlaces none;
  none.em = 14;
  EXPECT_EQ(place_rank_lanes(ranks_, 100, 3, none), 100);
  EXPECT_TRUE(none.lanes.empty());
  EXPECT_EQ(none.ranks_without_room, 4u);
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
