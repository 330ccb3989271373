// Runs, copies and waits on several streams take the times computed by hand, however late it is.
#include "simulator/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/hand_made.h"

namespace tidemark::simulate_test {
namespace {

using std::chrono::nanoseconds;
using testing::ElementsAre;

/// Buffers of 400 B and 600 B: a run that reads the one and writes the other moves 1000 B, which
/// takes 1000 ns and all of the toy device's bandwidth.
struct SimulateTest : testing::Test {
  Device device = toy_device();
  HandMade made{2};
  BufferId a = made.place(400), b = made.place(600), c = made.place(400), d = made.place(600);
  BufferId little = made.place(50), small = made.place(50);

  Timeline simulated() const { return simulate(chain(1), made.schedule(), device); }
};

using Span = std::pair<std::int64_t, std::int64_t>;

std::vector<Span> spans(const Timeline& timeline) {
  std::vector<Span> spans;
  for (const TimedRun& run : timeline.runs) spans.emplace_back(run.begin.count(), run.end.count());
  return spans;
}

TEST_F(SimulateTest, RunsOfOneStreamFollowEachOther) {
  made.run({a}, {b}), made.run({a}, {b});
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 1000}, Span{1000, 2000}));
  EXPECT_EQ(simulated().duration, nanoseconds(2000));
  EXPECT_EQ(simulated().idle, nanoseconds(0));
  EXPECT_EQ(simulated().overlap, nanoseconds(0));
}

// Each alone fills the memory bus, so together they take as long as one after the other.
TEST_F(SimulateTest, TwoRunsThatFillTheDeviceHideNothing) {
  made.run({a}, {b}, s0), made.run({c}, {d}, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 2000}, Span{0, 2000}));
  EXPECT_EQ(simulated().overlap, nanoseconds(2000));
}

// 1000 ns and 500 ns of work: both at half speed until the short one ends at 1000 ns, then the 500
// ns that are left alone.
TEST_F(SimulateTest, TheLongerRunSpeedsUpWhenTheShorterEnds) {
  made.run({a}, {b}, s0), made.run({c, little}, {small}, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 1500}, Span{0, 1000}));
}

// 100 B in a kernel that takes 1000 ns from end to end use a tenth of the bus and few slots.
TEST_F(SimulateTest, TwoSmallRunsOverlapFully) {
  device.kernel_gap = nanoseconds(900);
  made.run({little}, {small}, s0), made.run({little}, {}, s1);
  made.run({small}, {}, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 1000}, Span{0, 950}, Span{950, 1900}));
}

TEST_F(SimulateTest, AWaitHoldsItsStreamUntilTheEvent) {
  made.run({a}, {b}, s0);
  made.wait(made.record(s0), s1);
  made.run({c}, {d}, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 1000}, Span{1000, 2000}));
}

// The host launches one kernel per 1000 ns, the device needs 100 ns for each: it waits for the
// first 1000 ns, then 900 ns before each further kernel.
TEST_F(SimulateTest, ALaunchBoundStepWaitsForTheHost) {
  device.host_launch = nanoseconds(1000);
  for (int i = 0; i < 3; ++i) made.run({little}, {small});
  EXPECT_THAT(spans(simulated()),
              ElementsAre(Span{1000, 1100}, Span{2000, 2100}, Span{3000, 3100}));
  EXPECT_EQ(simulated().waits_for_host, nanoseconds(2800));
  EXPECT_EQ(simulated().idle, nanoseconds(2800));
  EXPECT_EQ(simulated().host, nanoseconds(3000));
  EXPECT_EQ(simulated().duration, nanoseconds(3100));
}

TEST_F(SimulateTest, OneStreamAndTwoAgreeAboutALaunchBoundStep) {
  device.host_launch = nanoseconds(1000);
  HandMade one{1}, two{2};
  for (HandMade* each : {&one, &two}) {
    const BufferId x = each->place(50), y = each->place(50);
    for (int i = 0; i < 3; ++i) each->run({x}, {y});
  }
  const Timeline alone = simulate(chain(1), one.schedule(), device);
  const Timeline beside = simulate(chain(1), two.schedule(), device);
  EXPECT_EQ(spans(alone), spans(beside));
  EXPECT_EQ(alone.waits_for_host, beside.waits_for_host);
  EXPECT_EQ(alone.idle, beside.idle);
}

// The host launches the second kernel only when the first is done.
TEST_F(SimulateTest, AHostThatWaitsIssuesNothing) {
  device.host_launch = nanoseconds(200);
  made.run({a}, {b}, s0);
  made.synchronize(made.record(s0));
  made.run({c}, {d}, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{200, 1200}, Span{1400, 2400}));
}

// Half a byte per ns over the host's link, and nothing of the device's own bandwidth.
TEST_F(SimulateTest, ACopyToTheHostRunsBesideAKernel) {
  made.run({a}, {b}, s0);
  made.copy_out(c, s1);
  EXPECT_THAT(spans(simulated()), ElementsAre(Span{0, 1000}, Span{0, 800}));
}

// --- very long steps ----------------------------------------------------------------------------

// In ns: 116 days, 104 days and a bit (where doubles begin to lose whole nanoseconds), 2 years.
constexpr std::array long_times = {std::int64_t{10'000'000'000'000'000},
                                   (std::int64_t{1} << 53) + 2, std::int64_t{1} << 55};

/// Both streams wait until `time` has passed, then run a few hundred kernels of all sizes that wait
/// for each other now and then.
Schedule busy_streams_after(std::int64_t time, std::uint64_t seed) {
  HandMade made{2};
  Dice dice(seed);
  made.run({made.place(time)}, {});
  made.wait(made.record(s0), s1);
  for (int i = 0; i < 300; ++i) {
    const StreamId stream = dice.one_in(2) ? s0 : s1, other = stream == s0 ? s1 : s0;
    const auto bytes = static_cast<std::int64_t>(1 + dice.below(dice.one_in(2) ? 9 : 99'999));
    made.run({made.place(bytes)}, {}, stream);
    if (dice.one_in(4)) made.wait(made.record(stream), other);
  }
  return made.schedule();
}

/// From the end of the first run.
std::vector<Span> spans_after_the_first(const Timeline& timeline) {
  std::vector<Span> all = spans(timeline);
  const std::int64_t start = all.front().second;
  all.erase(all.begin());
  for (auto& [begin, end] : all) begin -= start, end -= start;
  return all;
}

TEST_F(SimulateTest, WhatHappensDoesNotDependOnHowLateItIs) {
  device.kernel_gap = nanoseconds(7);
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto early = simulate(chain(1), busy_streams_after(1000, seed), device);
    for (const std::int64_t time : long_times) {
      const auto late = simulate(chain(1), busy_streams_after(time, seed), device);
      EXPECT_EQ(spans_after_the_first(late), spans_after_the_first(early)) << time << " ns";
      EXPECT_EQ(late.overlap, early.overlap);
      EXPECT_EQ(late.idle, early.idle);
    }
  }
}

// Kernels of another stream begin and end beside it, and none of them slows it.
TEST_F(SimulateTest, ARunThatSharesNothingTakesItsOwnTimeAtAnyTime) {
  for (const std::int64_t time : long_times) {
    HandMade two{2};
    two.run({two.place(time)}, {}, s0);
    two.wait(two.record(s0), s1);
    two.copy_out(two.place(1'000'001), s0);
    for (int i = 0; i < 1000; ++i) two.run({two.place(3)}, {}, s1);
    const TimedRun copy = simulate(chain(1), two.schedule(), device).runs[1];
    EXPECT_EQ(copy.begin.count(), time);
    EXPECT_EQ(copy.end - copy.begin, nanoseconds(2'000'002)) << time;
  }
}

TEST_F(SimulateTest, ATimeThatCannotBeCountedIsRefused) {
  const auto refusal = [&](std::initializer_list<std::int64_t> times) -> std::string {
    HandMade one;
    for (const std::int64_t time : times) one.run({one.place(time)}, {});
    try {
      simulate(chain(1), one.schedule(), device);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  constexpr std::int64_t year = std::int64_t{1} << 55;
  EXPECT_EQ(refusal({year, year}), "");
  EXPECT_EQ(
      refusal({year, year, 100}),
      "the step would take 7.2e+07 s; time is counted up to 2^56 ns, which is two years (use a "
      "smaller batch, sequence, image or model)");
  EXPECT_THAT(refusal({8 * year}), testing::StartsWith("the step would take 2.9e+08 s;"));
}

TEST_F(SimulateTest, MemoryAppearsAndGoesWhenItsStreamGetsThere) {
  HandMade one;
  const BufferId given = one.place(400), made_first = one.allocate(600);
  one.run({given}, {made_first});
  one.free(made_first);
  const Timeline timeline = simulate(chain(1), one.schedule(), device);
  ASSERT_EQ(timeline.memory.size(), 2u);
  EXPECT_EQ(timeline.memory[0].time, nanoseconds(0));
  EXPECT_TRUE(timeline.memory[0].appears);
  EXPECT_EQ(timeline.memory[1].time, nanoseconds(1000));
  EXPECT_FALSE(timeline.memory[1].appears);
  EXPECT_EQ(total(timeline.baseline), Bytes{400});
}

}  // namespace
}  // namespace tidemark::simulate_test
