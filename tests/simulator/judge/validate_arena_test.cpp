// The judge of places is judged.
#include "tests/simulator/judge/judged_example.h"

namespace tidemark::validate_arena_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// --- the judge of places ------------------------------------------------------------------------

TEST(ValidateArena, AcceptsWhatPlanArenaMakes) {
  const Example e;
  EXPECT_THAT(validate(e.schedule, plan_arena(e.schedule)), IsEmpty());
}

TEST(ValidateArena, NoticesTwoBuffersAtOnePlaceAtOneTime) {
  Example e;
  Arena arena = plan_arena(e.schedule);
  const BufferId fc = e.written(e.run(Task::Forward, "fc"));
  const BufferId gelu = e.written(e.run(Task::Forward, "gelu"));
  arena.offsets[index(gelu)] = arena.offsets[index(fc)];
  EXPECT_THAT(validate(e.schedule, arena), Contains("buffer 7 is over buffer 6"));
}

TEST(ValidateArena, NoticesABufferOverAPersistentOne) {
  Example e;
  Arena arena = plan_arena(e.schedule);
  arena.offsets[6] = arena.offsets[3];
  EXPECT_THAT(validate(e.schedule, arena), Contains("buffer 6 is over buffer 3"));
}

TEST(ValidateArena, NoticesPlacesThatAreNotAlignedOrOutside) {
  Example e;
  const Arena arena = plan_arena(e.schedule);
  Arena moved = arena;
  moved.offsets[5] += 8;
  EXPECT_THAT(validate(e.schedule, moved), Contains(HasSubstr("not aligned")));
  moved = arena;
  moved.offsets[5] = moved.size.count;
  EXPECT_THAT(validate(e.schedule, moved), Contains(HasSubstr("buffer 5 is at [")));
  moved = arena;
  moved.offsets.pop_back();
  EXPECT_THAT(validate(e.schedule, moved), Contains(HasSubstr("places for")));
}

// The next owner of an address must have waited for the last one, on whatever stream that was.
TEST(ValidateArena, NoticesAnOwnerThatDidNotWait) {
  constexpr StreamId first{0}, second{1};
  constexpr BufferId a{0}, b{1};
  Schedule schedule;
  schedule.streams = 2, schedule.events = 1;
  schedule.buffers = {{.size = {8}, .stream = first}, {.size = {8}, .stream = second}};
  schedule.operands = {a, b};
  schedule.steps = {Allocate{a},
                    tidemark::Run{Task::Seed, first, no_op, 0, 0, 1},
                    Record{EventId{0}, first},
                    Free{a, first},
                    Wait{EventId{0}, second},
                    Allocate{b},
                    tidemark::Run{Task::Seed, second, no_op, 1, 0, 1},
                    Free{b, second}};
  const Arena arena{.offsets = {0, 0}, .size = {8}};
  EXPECT_THAT(validate(schedule, arena), IsEmpty());
  std::swap(schedule.steps[4], schedule.steps[5]);  // waits only after it got the memory
  EXPECT_THAT(validate(schedule, arena),
              Contains("buffer 1 is over buffer 0, which another stream may still use"));
}

}  // namespace
}  // namespace tidemark::validate_arena_test
