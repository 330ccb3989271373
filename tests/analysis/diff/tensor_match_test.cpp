// Tensors of two peaks, paired: what is left says exactly why one needs more.
#include "analysis/diff/tensor_match.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/analysis/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark::diff::tensor_match_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Bytes sum_of(const std::vector<Unmatched>& rows) {
  Bytes sum;
  for (const Unmatched& row : rows) sum += row.bytes();
  return sum;
}

void expect_adds_up(const TensorMatch& match) {
  EXPECT_EQ(match.change(), sum_of(match.extra) - sum_of(match.missing) + match.rounding);
}

// As a run of PyTorch is seen: sizes are those that its allocator deals out, names are lost, and a
// tensor that nobody predicted is alive all the time.
Recording as_measured(Recording recording, std::int64_t extra) {
  recording.source = Source::Measured;
  for (Buffer& buffer : recording.schedule.buffers) {
    const Bytes rounded{(buffer.size.count + 511) / 512 * 512};
    if (buffer.persistent)
      recording.timeline.baseline[static_cast<std::size_t>(buffer.category)] +=
          rounded - buffer.size;
    buffer.size = rounded, buffer.tensor = no_tensor;
  }
  recording.schedule.buffers.push_back(
      {.size = {extra}, .category = Category::Workspace, .persistent = true});
  recording.timeline.baseline[static_cast<std::size_t>(Category::Workspace)] += Bytes{extra};
  return recording;
}

TEST(TensorMatch, TheSameStepHasPartnersForAll) {
  const Recording step = recorded(small_trace(), "vanilla");
  const TensorMatch match = match_tensors(step, step);
  EXPECT_THAT(match.extra, IsEmpty());
  EXPECT_THAT(match.missing, IsEmpty());
  EXPECT_EQ(match.matched_bytes, match.before);
  EXPECT_EQ(match.rounding, Bytes{});
  EXPECT_EQ(headline(match, "predicted"), "the same tensors as predicted");
}

TEST(TensorMatch, FindsWhatNobodyPredicted) {
  // Its tensors are larger than the grain of the allocator.
  const Trace step = build_trace(find_model("vit-b-16"), {.batch = 1});
  const Recording predicted = recorded(step, "vanilla");
  const TensorMatch match = match_tensors(predicted, as_measured(predicted, 3 << 20));
  EXPECT_THAT(match.missing, IsEmpty());
  ASSERT_EQ(match.extra.size(), 1u);
  EXPECT_EQ(match.extra[0].bytes(), Bytes{3 << 20});
  EXPECT_GT(match.rounding, Bytes{});
  expect_adds_up(match);
  EXPECT_THAT(headline(match, "predicted"), HasSubstr("more than predicted: 3.00 MiB ("));
}

TEST(TensorMatch, OfTwoStrategiesAddsUpBothWays) {
  const Trace step = build_trace(find_model("vit-ti-16"), {.batch = 1});
  const Recording vanilla = recorded(step, "vanilla");
  for (const char* strategy : {"checkpoint", "mesa", "pareprop", "offload"}) {
    const Recording other = recorded(step, strategy);
    const TensorMatch there = match_tensors(vanilla, other), back = match_tensors(other, vanilla);
    expect_adds_up(there);
    expect_adds_up(back);
    EXPECT_EQ(there.change().count, -back.change().count) << strategy;
    EXPECT_EQ(there.matched, back.matched) << strategy;
    EXPECT_EQ(sum_of(there.extra), sum_of(back.missing)) << strategy;
    EXPECT_TRUE(std::ranges::is_sorted(there.missing, std::ranges::greater{}, &Unmatched::bytes));
  }
}

TEST(TensorMatch, WhatEveryBlockHasIsOneRow) {
  const auto step = [](const char* strategy) {
    return recorded(build_trace(find_model("vit-ti-16"), {.batch = 32}), strategy);
  };
  const TensorMatch match = match_tensors(step("checkpoint"), step("vanilla"));
  ASSERT_FALSE(match.extra.empty());
  EXPECT_THAT(match.extra.front().name, HasSubstr("blocks.*."));
  EXPECT_GE(match.extra.front().count, 11u);
  expect_adds_up(match);
}

TEST(TensorMatch, EqualTensorsAreOneRow) {
  TensorMatch match;
  match.after = Bytes{5 << 20};
  match.extra = {{"a", {2 << 20}, 2}, {"b", {1 << 20}, 1}};
  EXPECT_EQ(headline(match, "A"), "5.00 MiB more than A: 2 × 2.00 MiB a, 1.00 MiB b");
  match.extra.push_back({"c", {1}, 1});
  match.extra.push_back({"d", {1}, 1});
  EXPECT_THAT(headline(match, "A"), testing::EndsWith(", …"));
}

}  // namespace
}  // namespace tidemark::diff::tensor_match_test
