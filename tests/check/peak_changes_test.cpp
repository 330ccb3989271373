// Changes between two peaks are sorted by size and add up; what is new, gone or a bound is named.
#include "analysis/check/peak_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/check/check_example.h"

namespace tidemark::regression::peak_changes_test {
namespace {

PeakGroup group(const std::string& role, std::int64_t bytes, std::int64_t tensors = 1) {
  return {role, "activation", "gelu", "keep", tensors, Bytes{bytes}};
}

ExperimentOutcome outcome_with(std::vector<PeakGroup> groups) {
  ExperimentOutcome outcome = small_outcome();
  std::ranges::stable_sort(groups, std::greater(), &PeakGroup::bytes);
  outcome.peak = std::move(groups);
  return outcome;
}

PeakDifference difference(const std::vector<PeakGroup>& before, const std::vector<PeakGroup>& now,
                          std::size_t kept = 100) {
  return difference_of_peaks(expected_of("x", outcome_with(before), kept), outcome_with(now));
}

TEST(PeakChanges, AreNoneBetweenEqualPeaks) {
  const PeakDifference same =
      difference({group("a", 5), group("b", 3)}, {group("a", 5), group("b", 3)});
  EXPECT_TRUE(same.changes.empty());
  EXPECT_EQ(same.rest.change(), Bytes{});
}

TEST(PeakChanges, AreSortedByTheirSizeInEitherDirection) {
  const auto changes = difference({group("a", 50), group("b", 30), group("c", 9)},
                                  {group("a", 51), group("b", 10), group("c", 14)})
                           .changes;
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].now.role, "b");
  EXPECT_EQ(changes[0].change(), Bytes{-20});
  EXPECT_EQ(changes[1].now.role, "c");
  EXPECT_EQ(changes[2].now.role, "a");
}

TEST(PeakChanges, NameWhatIsNewAndGone) {
  const auto changes =
      difference({group("a", 50), group("b", 30)}, {group("a", 50), group("c", 20)}).changes;
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_TRUE(changes[0].is_gone);
  EXPECT_EQ(changes[0].change(), Bytes{-30});
  EXPECT_TRUE(changes[1].is_new);
  EXPECT_EQ(changes[1].change(), Bytes{20});
}

TEST(PeakChanges, FollowATensorThatAnotherOpMakesNow) {
  PeakGroup other = group("a", 60);
  other.op = "regelu2";
  const auto changes = difference({group("a", 50)}, {other}).changes;
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].before.op, "gelu");
  EXPECT_EQ(changes[0].now.op, "regelu2");
  EXPECT_EQ(changes[0].change(), Bytes{10});
}

TEST(PeakChanges, NoticeADecisionThatCostsNothing) {
  PeakGroup other = group("a", 50);
  other.decision = "recompute";
  ASSERT_EQ(difference({group("a", 50)}, {other}).changes.size(), 1u);
}

// "c" was below the kept groups: it was at most 30, the smallest of them.
TEST(PeakChanges, AreBoundsWhereTheBaselineKeptNoMore) {
  const PeakDifference bound =
      difference({group("a", 50), group("b", 30), group("c", 25), group("d", 20)},
                 {group("a", 50), group("b", 30), group("c", 90), group("d", 20)}, 2);
  ASSERT_EQ(bound.changes.size(), 1u);
  EXPECT_TRUE(bound.changes[0].is_bound);
  EXPECT_FALSE(bound.changes[0].is_new);
  EXPECT_EQ(bound.changes[0].now.role, "c");
  EXPECT_EQ(bound.changes[0].change(), Bytes{60});  // at least: 90 − 30
  EXPECT_EQ(bound.rest.change(), Bytes{65});        // c and d, exactly
}

// The rows of any two peaks add up to the change of the total, however few groups are kept, and
// what is called new was not there.
TEST(PeakChanges, AddUpToTheChangeOfThePeak) {
  std::mt19937 random(20260101);
  const auto number = [&](int below) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<PeakGroup> before, now;
    std::int64_t total_before = 0, total_now = 0;
    for (int i = 0; i < 8; ++i) {
      const std::string role(1, static_cast<char>('a' + i));
      const std::int64_t old_size = number(20), new_size = number(3) == 0 ? old_size : number(20);
      if (old_size > 0) before.push_back(group(role, old_size));
      if (new_size > 0) now.push_back(group(role, new_size));
      // Some of it, perhaps all, in a block that the baseline does not know.
      if (new_size > 0 && number(2) == 0)
        now.back().blocks = {{1, 1, 1, Bytes{number(20) % new_size + 1}}};
      total_before += old_size;
      total_now += new_size;
    }
    ExperimentOutcome old_outcome = outcome_with(before), new_outcome = outcome_with(now);
    old_outcome.model.block_names = {"blocks.0"};
    new_outcome.blocks = {"blocks.0", "blocks.1"};
    const PeakDifference found = difference_of_peaks(
        expected_of("x", old_outcome, static_cast<std::size_t>(number(9))), new_outcome);
    Bytes sum = found.rest.change();
    for (const PeakChange& change : found.changes) {
      if (!change.is_bound) sum += change.change();
      const auto same = std::ranges::find(before, change.now.role, &PeakGroup::role);
      EXPECT_TRUE(!change.is_new || same == before.end());
      const bool is_there = std::ranges::find(now, change.now.role, &PeakGroup::role) != now.end();
      EXPECT_EQ(is_there || change.now.role == "blocks.1", !change.is_gone);
      EXPECT_TRUE(!change.is_bound || same == before.end() || same->bytes <= change.now.bytes);
    }
    EXPECT_EQ(sum, (Bytes{total_now - total_before})) << "round " << round;
    EXPECT_GE(found.rest.before.bytes, Bytes{});
  }
}

// Tensors that one block at a time has at the peak are not the new block's doing.
TEST(PeakChanges, CreditANewBlockWithGrowthOnly) {
  ExperimentOutcome before = outcome_with({group("blocks.*.x", 20, 2), group("blocks.*.y", 7)});
  ExperimentOutcome now = outcome_with({group("blocks.*.x", 30, 3), group("blocks.*.y", 7)});
  before.model.block_names = {"blocks.0-1"};
  before.trace = now.trace = "a";
  now.blocks = {"blocks.0", "blocks.1", "blocks.2"};
  now.peak[0].blocks = {{0, 2, 1, Bytes{10}}};
  now.peak[1].blocks = {{2, 2, 1, Bytes{7}}};
  const auto changes = difference_of_peaks(expected_of("x", before, 8), now).changes;
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(describe(changes[0]), "[NEW] +10 B blocks.2 (new block; 1 tensor)");
}

// A baseline of before blocks were listed, or of a measured result, knows no block: none is new.
TEST(PeakChanges, OfABaselineWithoutBlocksCallNoneNew) {
  ExperimentOutcome before = outcome_with({group("blocks.*.x", 20, 2)});
  ExperimentOutcome now = outcome_with({group("blocks.*.x", 30, 3)});
  now.blocks = {"blocks.0", "blocks.1", "blocks.2"};
  now.peak[0].blocks = {{0, 2, 1, Bytes{10}}};
  Expected expected = expected_of("x", before, 8);
  for (const bool has_model : {false, true}) {
    if (has_model) expected.model = ModelSize{1, 2, 3, {}};
    if (!has_model) expected.model.reset();
    const auto changes = difference_of_peaks(expected, now).changes;
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(describe(changes[0]), "+10 B blocks.*.x (activation of gelu; 2 → 3 tensors; keep)");
  }
}

// Of what the baseline kept as one, tensors of a new block are told under its name, and their
// number leaves the rest as their bytes do.
TEST(PeakChanges, OfSmallGroupsCountTheTensorsOfNewBlocks) {
  ExperimentOutcome before = outcome_with({group("a", 50), group("c", 5, 2), group("d", 4, 1)});
  ExperimentOutcome now = outcome_with({group("a", 50), group("c", 15, 6), group("d", 4, 1)});
  before.model.block_names = {"blocks.0"};
  before.trace = now.trace = "a";
  now.blocks = {"blocks.0", "blocks.1"};
  now.peak[1].blocks = {{1, 1, 4, Bytes{10}}};
  const PeakDifference found = difference_of_peaks(expected_of("x", before, 1), now);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(describe(found.changes[0]), "[NEW] +10 B blocks.1 (new block; 4 tensors)");
  EXPECT_EQ(found.rest.before.tensors, 3);
  EXPECT_EQ(found.rest.now.tensors, 3);
  EXPECT_EQ(found.rest.change(), Bytes{});
}

TEST(PeakChange, IsDescribedInOneLine) {
  PeakChange change{group("blocks.*.mlp.gelu", 50, 12), group("blocks.*.mlp.gelu", 80, 14)};
  change.before.decision = "recompute";
  change.now.reason = "kept: nothing cheaper was asked for";
  EXPECT_EQ(describe(change),
            "+30 B blocks.*.mlp.gelu (activation of gelu; 12 → 14 tensors; was recompute, is keep "
            "(kept: nothing cheaper was asked for))");
  change.is_new = true;
  change.before.tensors = 0;
  change.before.bytes = Bytes{};
  EXPECT_EQ(describe(change),
            "[NEW] +80 B blocks.*.mlp.gelu (activation of gelu; 14 tensors; kept: nothing "
            "cheaper was asked for)");
}

}  // namespace
}  // namespace tidemark::regression::peak_changes_test
