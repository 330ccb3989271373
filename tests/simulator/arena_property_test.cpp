// The arena against the naive one, and against its judge: random schedules of one to six streams,
// wilder than any that lower() makes, and those of real models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/hand_made.h"
#include "tests/simulator/naive_arena.h"
#include "traces/presets.h"

namespace tidemark::arena_property_test {
namespace {

using testing::IsEmpty;

constexpr std::uint64_t first_seed = 404;

class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint64_t seed)
      : dice_(seed), streams_(1 + dice_.below(6)), made_(streams_) {}

  Schedule draw() {
    for (std::size_t i = dice_.below(4); i > 0; --i) made_.place(size());
    for (std::size_t i = 0; i < 120; ++i) step(dice_.below(10));
    return made_.schedule();
  }

 private:
  // Sizes of few kinds, so that many gaps fit exactly and many are equal; some of no bytes.
  std::int64_t size() { return static_cast<std::int64_t>(dice_.below(7)) * arena_alignment; }
  StreamId stream() { return static_cast<StreamId>(dice_.below(streams_)); }

  void step(std::size_t kind) {
    const StreamId s = stream();
    if (kind < 4) return live_.push_back(made_.allocate(size(), s));
    if (kind == 8 && dice_.one_in(2)) return events_.push_back(made_.record(s));
    if (kind == 9 && !events_.empty()) {
      const EventId event = dice_.one_in(2) ? events_.back() : dice_.pick(events_);
      return dice_.one_in(8) ? made_.synchronize(event) : made_.wait(event, s);
    }
    if (live_.empty()) return;
    const std::size_t which = dice_.below(live_.size());
    const BufferId buffer = live_[which];
    if (kind == 4) return made_.run({buffer}, {dice_.pick(live_)}, s);
    if (kind == 5) return made_.copy_out(buffer, s);
    made_.free(buffer, s);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  Dice dice_;
  std::size_t streams_;
  HandMade made_;
  std::vector<BufferId> live_;
  std::vector<EventId> events_;
};

TEST(ArenaProperty, FindsThePlacesOfANaiveSearch) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 5'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Schedule schedule = RandomSchedule(seed).draw();
    const Arena arena = plan_arena(schedule), naive = naive_arena(schedule);
    ASSERT_EQ(arena.offsets, naive.offsets);
    ASSERT_EQ(arena.size, naive.size);
    ASSERT_THAT(validate(schedule, arena), IsEmpty());
  }
}

TEST(ArenaProperty, FindsThePlacesOfANaiveSearchInRealSteps) {
  for (const char* strategy : {"vanilla", "checkpoint", "mesa", "pareprop", "pareprop:hoist"}) {
    SCOPED_TRACE(strategy);
    const auto trace = std::make_shared<const Trace>(build_trace(find_model("swin-t"), {}));
    const PlannedStep planned = plan_step(trace, parse_strategy(strategy));
    const Schedule schedule = lower(*planned.trace, planned.plan);
    EXPECT_EQ(plan_arena(schedule).offsets, naive_arena(schedule).offsets);
  }
}

}  // namespace
}  // namespace tidemark::arena_property_test
