// Buffers get aligned best-fit gaps, and streams share memory only where events order them.
#include "simulator/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "tests/simulator/hand_made.h"

namespace tidemark::arena_test {
namespace {

using testing::IsEmpty;

constexpr std::int64_t page = arena_alignment;

Arena packed(const HandMade& made) {
  Arena arena = plan_arena(made.schedule());
  EXPECT_THAT(validate(made.schedule(), arena), IsEmpty());
  return arena;
}

std::int64_t offset(const Arena& arena, BufferId buffer) { return arena.offsets[index(buffer)]; }

TEST(Arena, OfNothingIsEmpty) { EXPECT_EQ(packed(HandMade()).size, Bytes{0}); }

TEST(Arena, AlignsEachBuffer) {
  HandMade made;
  const BufferId a = made.allocate(1), b = made.allocate(page + 1), c = made.allocate(1);
  const Arena arena = packed(made);
  EXPECT_EQ(offset(arena, a), 0);
  EXPECT_EQ(offset(arena, b), page);
  EXPECT_EQ(offset(arena, c), 3 * page);
  EXPECT_EQ(arena.size, Bytes{4 * page});
}

TEST(Arena, GivesFreedSpaceToTheNext) {
  HandMade made;
  const BufferId a = made.allocate(page);
  made.free(a);
  const BufferId b = made.allocate(page);
  const Arena arena = packed(made);
  EXPECT_EQ(offset(arena, b), offset(arena, a));
  EXPECT_EQ(arena.size, Bytes{page});
}

TEST(Arena, KeepsPersistentBuffersApart) {
  HandMade made;
  const BufferId weight = made.place(page);
  const BufferId a = made.allocate(page);
  EXPECT_NE(offset(packed(made), a), offset(packed(made), weight));
}

// Free: three pages, one between, two. The two fit best.
TEST(Arena, TakesTheGapThatFitsBest) {
  HandMade made;
  const BufferId three = made.allocate(3 * page);
  made.allocate(page);
  const BufferId two = made.allocate(2 * page);
  made.allocate(page);
  made.free(three), made.free(two);
  const BufferId next = made.allocate(2 * page);
  const Arena arena = packed(made);
  EXPECT_EQ(offset(arena, next), offset(arena, two));
}

TEST(Arena, JoinsGapsThatTouch) {
  HandMade made;
  const BufferId a = made.allocate(page), b = made.allocate(page);
  made.allocate(page);
  made.free(a), made.free(b);
  const BufferId next = made.allocate(2 * page);
  EXPECT_EQ(offset(packed(made), next), 0);
}

TEST(Arena, GrowsTheGapAtItsEnd) {
  HandMade made;
  made.allocate(page);
  const BufferId last = made.allocate(page);
  made.free(last);
  made.allocate(3 * page);
  EXPECT_EQ(packed(made).size, Bytes{4 * page});
}

/// a is used on stream 0 and freed there; then b of stream 1 wants memory.
struct TwoOwners : HandMade {
  BufferId a, b;

  explicit TwoOwners(bool waits) : HandMade(2) {
    a = allocate(page, s0);
    run({}, {a}, s0);
    const EventId used = record(s0);
    free(a, s0);
    if (waits) wait(used, s1);
    b = allocate(page, s1);
    run({}, {b}, s1);
  }
};

TEST(Arena, SharesAcrossStreamsWhatIsOrdered) {
  const TwoOwners made(true);
  EXPECT_EQ(offset(packed(made), made.b), offset(packed(made), made.a));
}

TEST(Arena, SharesNothingAcrossStreamsByLuckOfTiming) {
  const TwoOwners made(false);
  EXPECT_NE(offset(packed(made), made.b), offset(packed(made), made.a));
  EXPECT_EQ(packed(made).size, Bytes{2 * page});
}

// b passes through a's place and is never used; a may still be.
TEST(Arena, RemembersUsersThroughABufferThatNobodyUsed) {
  HandMade made(2);
  const BufferId a = made.allocate(page, s0);
  made.run({}, {a}, s0);
  made.free(a, s0);
  const BufferId b = made.allocate(page, s0);
  made.free(b, s0);
  const BufferId c = made.allocate(page, s1);
  const Arena arena = packed(made);
  EXPECT_EQ(offset(arena, b), offset(arena, a));
  EXPECT_NE(offset(arena, c), offset(arena, a));
}

TEST(Arena, LetsTheHostOrderStreams) {
  HandMade made(2);
  const BufferId a = made.allocate(page, s0);
  made.run({}, {a}, s0);
  made.synchronize(made.record(s0));
  made.free(a, s0);
  const BufferId b = made.allocate(page, s1);
  EXPECT_EQ(offset(packed(made), b), offset(packed(made), a));
}

// The copy to the host still reads a when stream 1, which waited for the run before it, gets b.
TEST(Arena, WaitsForCopiesToo) {
  HandMade made(2);
  const BufferId a = made.allocate(page, s0);
  made.run({}, {a}, s0);
  made.wait(made.record(s0), s1);
  made.copy_out(a, s0);
  made.free(a, s0);
  const BufferId b = made.allocate(page, s1);
  EXPECT_NE(offset(packed(made), b), offset(packed(made), a));
}

}  // namespace
}  // namespace tidemark::arena_test
