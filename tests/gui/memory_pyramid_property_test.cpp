// On random lives, states and columns of the pyramid agree with brute force, and no peak is lost.
#include <gtest/gtest.h>

#include "gui/indexes/memory_pyramid.h"
#include "tests/gui/brute_force.h"
#include "tests/simulator/random_step.h"

namespace tidemark::gui::memory_pyramid_property_test {
namespace {

struct Life {
  Schedule schedule;
  Timeline timeline;
};

// Buffers that come and go, often several at the same nanosecond.
Life random_life(Dice& dice, std::size_t events) {
  Life life;
  std::vector<BufferId> alive;
  std::int64_t now = 0;
  life.timeline.baseline[0] = Bytes{1000};
  for (std::size_t i = 0; i < events; ++i) {
    if (!dice.one_in(3)) now += static_cast<std::int64_t>(dice.below(20));
    if (alive.empty() || dice.one_in(2)) {
      const auto id = static_cast<BufferId>(life.schedule.buffers.size());
      life.schedule.buffers.push_back(
          {.size = {static_cast<std::int64_t>(1 + dice.below(500))},
           .category = static_cast<Category>(dice.below(category_count))});
      life.timeline.memory.push_back({Nanoseconds{now}, id, true});
      alive.push_back(id);
    } else {
      const std::size_t k = dice.below(alive.size());
      life.timeline.memory.push_back({Nanoseconds{now}, alive[k], false});
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  life.timeline.duration = Nanoseconds{now};
  return life;
}

TEST(MemoryPyramid, KnowsEveryState) {
  Dice dice(3);
  const Life life = random_life(dice, 1000);
  const MemoryPyramid memory(life.schedule, life.timeline);
  const auto plain = plain_states(life.schedule, life.timeline);
  ASSERT_EQ(memory.states(), plain.size());
  for (StateId state = 0; state < plain.size(); ++state) {
    ASSERT_EQ(memory.categories_of(state), plain[state].bytes) << state;
    ASSERT_EQ(memory.total_of(state), total(plain[state].bytes)) << state;
  }
}

// A state has a part in a column if it begins there, or began before and nothing ended it until
// the column began.
TEST(MemoryPyramid, EachColumnShowsItsHighestMoment) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const Life life = random_life(dice, 10 + dice.below(400));
    const MemoryPyramid memory(life.schedule, life.timeline);
    const auto plain = plain_states(life.schedule, life.timeline);
    const double end = static_cast<double>(life.timeline.duration.count());
    for (int i = 0; i < 200; ++i) {
      const double from = end * static_cast<double>(dice.below(1000)) / 1000;
      const double to = from + 0.2 + static_cast<double>(dice.below(60));
      Bytes expected;
      for (std::size_t s = 0; s < plain.size(); ++s) {
        const double until = s + 1 < plain.size() ? plain[s + 1].begin : end + 1;
        const bool begins_in = plain[s].begin >= from && plain[s].begin < to;
        const bool lasts_into = plain[s].begin < from && until > from;
        if (begins_in || lasts_into) expected = std::max(expected, total(plain[s].bytes));
      }
      ASSERT_EQ(memory.total_of(memory.highest_in(from, to)), expected)
          << "seed " << seed << ": " << from << " to " << to;
    }
  }
}

TEST(MemoryPyramid, APeakOfOneInstantIsSeenFromAnyDistance) {
  Life life;
  for (const std::int64_t size : {10, 5000}) life.schedule.buffers.push_back({.size = {size}});
  const BufferId small{0}, tall{1};
  life.timeline.memory = {{Nanoseconds{0}, small, true},
                          {Nanoseconds{500'000}, tall, true},
                          {Nanoseconds{500'000}, tall, false}};
  const MemoryPyramid memory(life.schedule, life.timeline);
  EXPECT_EQ(memory.total_of(memory.highest_in(0, 1e6)), Bytes{5010});
  EXPECT_EQ(memory.total_of(memory.highest_in(499'999.5, 500'000.5)), Bytes{5010});
  EXPECT_EQ(memory.total_of(memory.highest_in(500'000.5, 500'001.5)), Bytes{10});
}

TEST(MemoryPyramid, AgreesWithThePeakOfTheReport) {
  Dice dice(11);
  const Life life = random_life(dice, 500);
  const MemoryPyramid memory(life.schedule, life.timeline);
  const Peak expected = peak(life.schedule, life.timeline);
  EXPECT_EQ(memory.total_of(memory.highest()), expected.bytes);
  EXPECT_EQ(memory.highest(), expected.event + 1);
  EXPECT_EQ(memory.categories_of(memory.highest()), expected.by_category);
}

TEST(MemoryPyramid, OfNothingIsTheBaseline) {
  Life life;
  life.timeline.baseline[0] = Bytes{7};
  const MemoryPyramid memory(life.schedule, life.timeline);
  EXPECT_EQ(memory.states(), 1u);
  EXPECT_EQ(memory.highest_in(0, 10), 0u);
  EXPECT_EQ(memory.at(5), 0u);
  EXPECT_EQ(memory.total_of(0), Bytes{7});
}

TEST(MemoryPyramid, AMomentHasTheStateAfterAllItsEvents) {
  Life life;
  life.schedule.buffers = {{.size = {1}}, {.size = {2}}};
  life.timeline.memory = {{Nanoseconds{5}, BufferId{0}, true}, {Nanoseconds{5}, BufferId{1}, true}};
  const MemoryPyramid memory(life.schedule, life.timeline);
  EXPECT_EQ(memory.at(4.9), 0u);
  EXPECT_EQ(memory.at(5), 2u);
}

}  // namespace
}  // namespace tidemark::gui::memory_pyramid_property_test
