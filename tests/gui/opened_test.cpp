// What a recording is made quick to ask: phases, who makes the peak, what memory there is.
#include "gui/opened.h"

#include <gmock/gmock.h>

#include "gui/panels/timeline_parts.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::opened_test {
namespace {

using testing::ElementsAre;

TEST(Phases, FollowEachOtherFromBeginToEnd) {
  for (const char* strategy : {"vanilla", "checkpoint", "pareprop", "mesa+checkpoint"}) {
    const Prediction made = predict(vit({strategy})).front();
    const auto& phases = made.opened->phases();
    ASSERT_EQ(phases.size(), 3u) << strategy;
    EXPECT_EQ(phases[0].name, "forward");
    EXPECT_EQ(phases[0].range.begin, 0);
    EXPECT_EQ(phases[1].name, "backward");
    EXPECT_EQ(phases[1].range.begin, phases[0].range.end);
    EXPECT_EQ(phases[2].name, "optimizer");
    EXPECT_EQ(phases[2].range.begin, phases[1].range.end);
    EXPECT_EQ(phases[2].range.end, made.opened->end());
  }
}

// 4 us of forward, 4 us of backward, no optimizer.
TEST(Phases, ThatDoNotOccurAreLeftOut) {
  const Opened opened(synthetic(4));
  ASSERT_EQ(opened.phases().size(), 2u);
  EXPECT_EQ(opened.phases()[0].range, (Range{0, 4000}));
  EXPECT_EQ(opened.phases()[1].range, (Range{4000, 8000}));
}

struct Expected {
  std::string_view name;
  Range range;
  std::size_t step;
};

// Two micro-batches are one step: a forward begins a step behind an optimizer alone.
TEST(Phases, AreThoseOfEachStep) {
  using enum Task;
  const Opened opened(
      of_tasks({Forward, Backward, Forward, Seed, Backward, Optimizer, Optimizer,  //
                Forward, Forward, Seed, Recompute, Optimizer,                      //
                Forward, Forward}));
  const std::vector<Expected> expected = {
      {"forward", {0, 100}, 0},     {"backward", {100, 500}, 0},  {"optimizer", {500, 700}, 0},
      {"forward", {700, 900}, 1},   {"backward", {900, 1100}, 1}, {"optimizer", {1100, 1200}, 1},
      {"forward", {1200, 1400}, 2},
  };
  ASSERT_EQ(opened.phases().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(opened.phases()[i].name, expected[i].name) << i;
    EXPECT_EQ(opened.phases()[i].range, expected[i].range) << i;
    EXPECT_EQ(opened.phases()[i].step, expected[i].step) << i;
  }
}

TEST(Peak, IsMadeByWhomTheReportNames) {
  for (const StrategySpec& spec : default_strategies()) {
    const Prediction made = predict(vit({spec.text}, 32)).front();
    if (!made.opened) continue;
    const auto maker = made.opened->maker_of_peak();
    ASSERT_TRUE(maker) << spec.text;
    const OpId op = made.opened->op_of(*maker);
    const std::string name(to_string(made.opened->run_of(*maker)->task));
    EXPECT_EQ(op == no_op ? name : made.opened->describe(*maker), made.report.peak_at) << spec.text;
  }
}

TEST(Peak, OfAStepThatAllocatesNothingIsMadeByNobody) {
  Recording recording;
  recording.trace = std::make_shared<const Trace>();
  EXPECT_FALSE(Opened(std::move(recording)).maker_of_peak());
}

TEST(Capacity, IsABudgetIfTheDeviceHasAnother) {
  WhatIf what_if = vit({"vanilla"});
  const auto without = predict(what_if).front().opened;
  EXPECT_FALSE(without->has_budget());
  EXPECT_EQ(without->device_capacity(), without->recording.capacity);
  what_if.scenario.budget = Bytes{std::int64_t{6} << 30};
  const auto with = predict(what_if).front().opened;
  EXPECT_TRUE(with->has_budget());
  EXPECT_EQ(with->device_capacity(), without->recording.capacity);
}

TEST(Capacity, OfAnUnknownDeviceIsNoBudget) {
  Recording recording = synthetic(4);
  recording.device = "unknown";
  recording.capacity = Bytes{1 << 20};
  EXPECT_FALSE(Opened(std::move(recording)).has_budget());
}

TEST(Selection, OfACategoryHasAllOfItsBuffers) {
  const auto opened = predict(vit({"vanilla"})).front().opened;
  const Selection selection{.category = Category::Gradient};
  for (std::size_t b = 0; b < opened->schedule().buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    EXPECT_EQ(belongs_to(*opened, id, selection),
              opened->schedule()[id].category == Category::Gradient);
  }
}

TEST(Selection, OfNothingHasNothing) {
  const auto opened = predict(vit({"vanilla"})).front().opened;
  for (std::size_t b = 0; b < opened->schedule().buffers.size(); ++b)
    EXPECT_FALSE(belongs_to(*opened, static_cast<BufferId>(b), {}));
}

// What an icicle walks: by category, then block, then op, then number, as one sort would have it.
TEST(ByHome, IsInTheOrderOfCategoryBlockAndOp) {
  const auto made = predict(vit({"checkpoint"}));
  for (const auto& opened : {made[0].opened, std::make_shared<const Opened>(synthetic(50))}) {
    std::vector<BufferId> expected;
    for (std::size_t b = 0; b < opened->schedule().buffers.size(); ++b)
      expected.push_back(static_cast<BufferId>(b));
    std::ranges::sort(expected, {}, [&](BufferId id) {
      return std::tuple(opened->schedule()[id].category, opened->block_of(id), opened->home_of(id),
                        id);
    });
    EXPECT_THAT(opened->by_home(), testing::ElementsAreArray(expected));
  }
}

// Between two sums that are kept, and where there is one: the runs one by one.
TEST(WorkIn, IsTheSumOverTheRunsThatBeginThere) {
  const auto made = predict(vit({"vanilla"}));
  const Opened& opened = *made.front().opened;
  ASSERT_GT(opened.timeline().runs.size(), 200u);
  for (const double share : {0.0, 0.1, 0.333, 0.5, 0.77, 1.0}) {
    const Nanoseconds begin{static_cast<std::int64_t>(0.2 * share * opened.end())};
    const Nanoseconds end{static_cast<std::int64_t>(share * opened.end())};
    Workload expected;
    for (std::size_t r = 0; r < opened.timeline().runs.size(); ++r) {
      const auto run = static_cast<RunId>(r);
      if (opened[run].begin < begin || opened[run].begin >= end) continue;
      const Cost cost = opened.cost_of(run).value();
      ++expected.runs, expected.bytes += cost.bytes, expected.flops += cost.flops;
    }
    const Workload found = opened.work_in(begin, end);
    EXPECT_EQ(found.runs, expected.runs) << share;
    EXPECT_NEAR(found.bytes, expected.bytes, 1e-9 * expected.bytes) << share;
    EXPECT_NEAR(found.flops, expected.flops, 1e-9 * expected.flops) << share;
  }
}

class Overlaid : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::size_t pairs : {4U, 8U, 2U, 3U, 5U, 6U}) robot_.model.add(synthetic(pairs));
    show_all(robot_.shown(), robot_.view);
  }
  const Opened* at(std::size_t i) const { return robot_.model.recordings()[i].opened.get(); }

  Robot robot_;
};

TEST_F(Overlaid, NothingIfComparedWithNothing) {
  EXPECT_TRUE(robot_.model.overlaid(robot_.view).empty());
}

TEST_F(Overlaid, TheOneThatIsComparedIsFirstAndFourAreEnough) {
  robot_.view.against = 2;
  EXPECT_THAT(robot_.model.overlaid(robot_.view), ElementsAre(at(2), at(1), at(3), at(4)));
  TimelinePlaces places;
  places.time = {robot_.view.visible, 0, 100};
  const std::vector<KeyEntry> reading = reading_of(places, robot_.model, robot_.view);
  EXPECT_EQ(reading.back().text, "1 more open, not drawn");
}

// 8 us are shown; what is compared takes 16 us.
TEST_F(Overlaid, TheAxisGoesToTheEndOfTheLongest) {
  robot_.frames(1);
  EXPECT_EQ(robot_.view.visible, whole({8000}));
  robot_.view.against = 1;
  robot_.frames(1);
  EXPECT_EQ(robot_.view.visible, whole({16'000}));
  robot_.view.visible = {2000, 3000};
  robot_.view.against.reset();
  robot_.frames(1);
  EXPECT_EQ(robot_.view.visible, (Range{2000, 3000}));  // what was chosen stays
  robot_.press(Key::F);
  EXPECT_EQ(robot_.view.visible, whole({8000}));
}

// A takes 8 us, B 16 us: at 12 us there is nothing left of A to read.
TEST_F(Overlaid, AfterTheEndOfOneItsBytesAreNotRead) {
  robot_.view.against = 1;
  robot_.frames(1);
  TimelinePlaces places;
  places.time = {robot_.view.visible, 0, 1000};
  for (const OpenRecording& one : robot_.model.recordings())
    places.curves.push_back(
        robot_.model.curves().of(one.opened, CurveChoice{}, robot_.view.visible));
  robot_.view.hover = 12'000;
  for (const KeyEntry& entry : reading_of(places, robot_.model, robot_.view)) {
    const bool is_of_b = entry.text.starts_with("B:");
    if (!entry.swatch || entry.text.starts_with("C:") || entry.text.starts_with("D:")) continue;
    EXPECT_EQ(entry.text.ends_with(" -"), !is_of_b) << entry.text;
  }
}

}  // namespace
}  // namespace tidemark::gui::opened_test
