// What of a step takes longer than it did.
#include "analysis/check/time_changes.h"

#include <gtest/gtest.h>

#include "tests/check/check_example.h"

namespace tidemark::regression::time_changes_test {
namespace {

diff::TimeGroup group(const std::string& op, std::int64_t time, std::int64_t stream = 0) {
  return {"forward", op, stream, 2, Nanoseconds{time}};
}

ExperimentOutcome outcome_with(std::vector<diff::TimeGroup> groups) {
  ExperimentOutcome outcome = small_outcome();
  outcome.times = std::move(groups);
  return outcome;
}

TimeDifference difference(const std::vector<diff::TimeGroup>& before,
                          const std::vector<diff::TimeGroup>& now, std::size_t kept = 100) {
  return difference_of_times(expected_of("x", outcome_with(before), kept), outcome_with(now));
}

// A reversible network has other ops than the model that was asked for.
TEST(TimeChanges, NameTheOpsOfTheNetworkThatRuns) {
  const CheckFile file = check_file(R"({"model": "vit-ti-16", "strategy": "reversible"})");
  const ExperimentOutcome outcome = run_experiments(file.path, file.experiments).front();
  std::int64_t norms = 0;
  for (const diff::TimeGroup& group : outcome.times)
    if (group.task == "forward" && group.op == "layer_norm") norms += group.runs;
  EXPECT_EQ(norms, 2 * 12 + 1);
}

TEST(TimeChanges, AreSortedByTheirSizeInEitherDirection) {
  const auto changes = difference({group("linear", 50), group("gelu", 30), group("add", 9)},
                                  {group("linear", 51), group("gelu", 10), group("add", 9)})
                           .changes;
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].now.op, "gelu");
  EXPECT_EQ(changes[0].change(), Nanoseconds{-20});
  EXPECT_EQ(changes[1].now.op, "linear");
}

TEST(TimeChanges, NameWhatIsNewAndGone) {
  const auto changes =
      difference({group("linear", 50), group("gelu", 30)}, {group("linear", 50), group("silu", 20)})
          .changes;
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_TRUE(changes[0].is_gone);
  EXPECT_EQ(describe(changes[0]), "[GONE] −30 ns forward of gelu (2 runs)");
  EXPECT_EQ(describe(changes[1]), "[NEW] +20 ns forward of silu (2 runs)");
}

// What moves to another stream leaves the one and is new on the other.
TEST(TimeChanges, TellStreamsApart) {
  const auto changes = difference({group("linear", 50)}, {group("linear", 50, 1)}).changes;
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(describe(changes[1]), "[NEW] +50 ns forward of linear on stream 1 (2 runs)");
}

// Two of four are kept, the others have 9 + 8 ns: none of them was longer than 9 of the kept's 10.
TEST(TimeChanges, BoundWhatTheBaselineDidNotKeep) {
  const std::vector<diff::TimeGroup> before = {group("a", 20), group("b", 10), group("c", 9),
                                               group("d", 8)};
  const TimeDifference same = difference(before, before, 2);
  EXPECT_TRUE(same.changes.empty());
  EXPECT_EQ(same.rest.change(), Nanoseconds{});
  const TimeDifference grown =
      difference(before, {group("a", 20), group("d", 15), group("b", 10), group("c", 9)}, 2);
  ASSERT_EQ(grown.changes.size(), 1u);
  EXPECT_TRUE(grown.changes[0].is_bound);
  EXPECT_EQ(describe(grown.changes[0]),
            "[NEW or longer] at least +5 ns forward of d (2 runs)");  // 15 − 10
  EXPECT_EQ(grown.rest.change(), Nanoseconds{7});
}

TEST(TimeChanges, AreUnknownToABaselineWithoutThem) {
  EXPECT_TRUE(difference({}, {group("linear", 50)}).changes.empty());
}

/// The verdict on `now` where `before` was recorded.
ExperimentVerdict verdict(const ExperimentOutcome& before, const ExperimentOutcome& now) {
  const CheckFile file =
      expecting(check_file(R"({"model": "gpt2"})"), std::vector<ExperimentOutcome>{before});
  return compare_with_baseline(file, {now}, {"1.0.0", false}).experiments.front();
}

TEST(TimeCause, NamesTheRunsThatGrewMost) {
  ExperimentOutcome before = outcome_with({group("linear", 3000), group("gelu", 2000)});
  ExperimentOutcome now = outcome_with({group("linear", 3100), group("gelu", 2900)});
  now.values[index(Metric::Step)] = 6000;
  const ExperimentVerdict slower = verdict(before, now);
  EXPECT_EQ(slower.time_cause,
            "in the step: of +1.00 µs, +900 ns forward of gelu (2.00 µs → 2.90 µs; 2 runs)");
  EXPECT_EQ(slower.cause, "");
  EXPECT_EQ(slower.time_changes.size(), 2u);
}

TEST(TimeCause, SaysWhereNoRunIsLonger) {
  const ExperimentOutcome before = outcome_with({group("linear", 3000)});
  ExperimentOutcome now = before;
  now.values[index(Metric::Step)] = 6000;
  EXPECT_TRUE(verdict(before, now).time_cause.starts_with("in the step: of +1.00 µs, none is in "));
}

TEST(ModelChange, IsToldByItsSize) {
  ExperimentOutcome before = small_outcome(), now = small_outcome();
  before.model = {100, 12, 400};
  now.model = {120, 13, 400};
  now.trace = "00000000000000bb";
  EXPECT_EQ(verdict(before, now).findings.front().text,
            "the model changed: 100 → 120 parameters, 12 → 13 blocks (its trace is "
            "00000000000000bb, expected 00000000000000aa)");
  now.model = before.model;
  EXPECT_TRUE(verdict(before, now)
                  .findings.front()
                  .text.starts_with(
                      "the model changed: as many parameters, blocks and ops, but not the same"));
}

}  // namespace
}  // namespace tidemark::regression::time_changes_test
