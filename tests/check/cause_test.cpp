// The cause that is named moves as the number does, and where there is none, what remains is said.
#include "analysis/check/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/check/peak_changes.h"
#include "analysis/check/time_changes.h"
#include "tests/check/check_example.h"

namespace tidemark::regression::cause_test {
namespace {

using testing::HasSubstr;

PeakGroup peak_group(const std::string& role, std::int64_t bytes, std::int64_t tensors = 1) {
  return {role, "activation", "gelu", "keep", tensors, Bytes{bytes}, ""};
}

PeakChange from_to(const std::string& role, std::int64_t before, std::int64_t now) {
  return {peak_group(role, before), peak_group(role, now)};
}

TimeChange took(const std::string& op, std::int64_t before, std::int64_t now) {
  return {{"forward", op, 0, 2, Nanoseconds{before}}, {"forward", op, 0, 2, Nanoseconds{now}}};
}

ExperimentVerdict peaks(std::vector<PeakChange> changes) {
  ExperimentVerdict verdict;
  verdict.peak_now = "backward of loss";
  verdict.changes = std::move(changes);
  return verdict;
}

// The largest changes stand first; the first that goes the peak's way is the cause.
TEST(MemoryCause, GoesTheWayOfThePeak) {
  const ExperimentVerdict verdict = peaks(
      {from_to("freed", 900, 100), from_to("larger", 100, 600), from_to("also larger", 0, 400)});
  EXPECT_EQ(
      memory_cause(verdict, Bytes{100}),
      "at the peak, backward of loss: of +100 B, +500 B larger (activation of gelu; 1 tensor; "
      "keep)");
  EXPECT_EQ(memory_cause(verdict, Bytes{-1}),
            "at the peak, backward of loss: of −1 B, −800 B freed (activation of gelu; 1 tensor; "
            "keep)");
}

// A decision may change beside a peak, and weigh nothing.
TEST(MemoryCause, HasAWeight) {
  PeakChange decision = from_to("same size", 500, 500);
  decision.before.decision = "recompute";
  for (const std::int64_t live : {-1, 1})
    EXPECT_THAT(memory_cause(peaks({decision}), Bytes{live}), HasSubstr("in the small groups"));
  EXPECT_THAT(memory_cause(peaks({decision, from_to("smaller", 5, 4)}), Bytes{-1}),
              HasSubstr("−1 B smaller"));
}

TEST(MemoryCause, MayBeWhatTheBaselineKeepsAsOne) {
  EXPECT_EQ(memory_cause(peaks({from_to("freed", 9, 1)}), Bytes{20}),
            "at the peak, backward of loss: of +20 B, all is in the small groups that the baseline "
            "keeps as one (raise peak_groups to tell them apart)");
}

TEST(MemoryCause, OfAnEqualPeakIsThePackingOrTheAllocator) {
  const auto cause_of = [](std::vector<MetricVerdict> metrics) {
    ExperimentVerdict verdict = peaks({from_to("larger", 1, 2)});
    verdict.metrics = std::move(metrics);
    return memory_cause(verdict, Bytes{});
  };
  const auto outside = [](Metric metric) { return MetricVerdict{metric, 1, 2, {}, true, true}; };
  const auto within = [](Metric metric) { return MetricVerdict{metric, 1, 2, {}, true, false}; };
  EXPECT_EQ(cause_of({}), "");
  EXPECT_EQ(cause_of({within(Metric::Planned), within(Metric::Reserved)}), "");
  EXPECT_EQ(cause_of({outside(Metric::Step)}), "");  // time has causes of its own
  EXPECT_THAT(cause_of({outside(Metric::Step), outside(Metric::Planned)}), HasSubstr("arena"));
  EXPECT_THAT(cause_of({within(Metric::Planned), outside(Metric::Allocated)}),
              HasSubstr("the allocator"));
  EXPECT_THAT(cause_of({outside(Metric::Reserved)}), HasSubstr("the allocator"));
}

TEST(TimeCause, GoesTheWayOfTheStep) {
  ExperimentVerdict verdict;
  verdict.time_changes = {took("linear", 900, 100), took("gelu", 100, 600), took("add", 1, 9)};
  EXPECT_EQ(time_cause(verdict, Nanoseconds{50}),
            "in the step: of +50 ns, +500 ns forward of gelu (100 ns → 600 ns; 2 runs)");
  EXPECT_EQ(time_cause(verdict, Nanoseconds{-50}),
            "in the step: of −50 ns, −800 ns forward of linear (900 ns → 100 ns; 2 runs)");
}

// No group went the step's way: the short ones did, or else nothing ran longer.
TEST(TimeCause, MayBeWhatTheBaselineKeepsAsOneOrTheStreams) {
  ExperimentVerdict verdict;
  verdict.time_changes = {took("linear", 900, 100)};
  EXPECT_THAT(time_cause(verdict, Nanoseconds{50}), HasSubstr("of +50 ns, none is in the runs"));
  verdict.time_rest = took("", 10, 70);
  EXPECT_EQ(time_cause(verdict, Nanoseconds{50}),
            "in the step: of +50 ns, all is in the short groups that the baseline keeps as one "
            "(raise peak_groups to tell them apart)");
}

TEST(PeakChange, IsWordedAsWhatItIs) {
  PeakChange change = from_to("head", 700, 0);
  change.now.tensors = 0;
  change.is_gone = true;
  EXPECT_EQ(describe(change), "[GONE] −700 B head (activation of gelu; 1 → 0 tensors)");
  change = from_to("", 100, 300);
  change.is_bound = true;
  change.before.decision = "";
  change.now = {"", "workspace", "", "", 3, Bytes{300}, ""};
  change.before.op = "";
  EXPECT_EQ(describe(change),
            "[NEW or larger] at least +200 B scratch memory (workspace; 3 tensors)");
  change = from_to("head", 100, 300);
  change.before.op = "silu";
  change.now.decision = "recompute";
  EXPECT_EQ(describe(change),
            "+200 B head (activation of gelu, once of silu; 1 tensor; was keep, is recompute)");
}

// A lone group that ran before and runs now may run another number of times.
TEST(TimeChange, IsWordedAsWhatItIs) {
  TimeChange change = took("gelu", 1000, 3000);
  change.now.stream = 1;
  change.now.runs = 4;
  EXPECT_EQ(describe(change),
            "+2.00 µs forward of gelu on stream 1 (1.00 µs → 3.00 µs; 2 → 4 runs)");
}

// Two of three are kept, the shortest of them with 10 ns; the third had 9, so its bound is 9.
TEST(TimeChange, IsBoundedByAllThatTheBaselineDidNotKeep) {
  const auto group = [](const char* op, std::int64_t time) {
    return diff::TimeGroup{"forward", op, 0, 2, Nanoseconds{time}};
  };
  ExperimentOutcome before = small_outcome(), now = before;
  before.times = {group("a", 20), group("b", 10), group("c", 9)};
  const Expected expected = expected_of("x", before, 2);
  for (const std::int64_t time : {8, 9, 10}) {
    now.times = {group("a", 20), group("b", 10), group("c", time)};
    const TimeDifference difference = difference_of_times(expected, now);
    ASSERT_EQ(difference.changes.size(), time > 9 ? 1u : 0u) << time;
    EXPECT_EQ(difference.rest.change(), Nanoseconds{time - 9});
    EXPECT_EQ(difference.rest.now.runs, 2);
    if (time > 9) {
      EXPECT_EQ(difference.changes[0].change(), Nanoseconds{1});
    }
  }
  // Of a baseline that kept all, what it does not list is new, however short.
  now.times = {group("a", 20), group("b", 10), group("c", 9), group("d", 1)};
  const TimeDifference all = difference_of_times(expected_of("x", before, 3), now);
  ASSERT_EQ(all.changes.size(), 1u);
  EXPECT_EQ(describe(all.changes[0]), "[NEW] +1 ns forward of d (2 runs)");
  EXPECT_EQ(all.rest.change(), Nanoseconds{});
}

}  // namespace
}  // namespace tidemark::regression::cause_test
