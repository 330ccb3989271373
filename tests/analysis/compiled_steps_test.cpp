// Steps of torch.compile(model), and of blocks that were compiled one by one, beside what
// AOTAutograd's partitioner kept and PyTorch's own allocator needed (steps_compiled.json and
// steps_compiled_blocks.json, made by scripts/capture_steps/compiled.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/measured_steps.h"

namespace tidemark::compiled_steps_test {
namespace {

const std::vector<MeasuredStep>& steps() {
  static const std::vector<MeasuredStep> all =
      compiled_steps(TIDEMARK_TESTS_DIR "/reference/steps_compiled.json");
  return all;
}

const std::vector<MeasuredStep>& steps_of_blocks() {
  static const std::vector<MeasuredStep> all =
      compiled_steps(TIDEMARK_TESTS_DIR "/reference/steps_compiled_blocks.json");
  return all;
}

std::vector<double> off(const std::vector<MeasuredStep>& steps, std::int64_t StepBytes::*number) {
  std::vector<double> distances;
  for (const MeasuredStep& step : steps)
    distances.push_back(std::abs(percent_off(step.predicted.*number, step.measured.*number)));
  std::ranges::sort(distances);
  return distances;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

bool starts_with_any(const MeasuredStep& step, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) {
    return std::string_view(step.name).starts_with(beginning);
  });
}

// What is not followed: one head of keys for all of queries, which is a view where autocast copies
// it (as in eager steps); heads that Falcon copies for a mask where none is shared; a table that
// is indexed, not embedded, whose rows are looked up again; and the masks of a composed attention.
bool is_known_miss(const MeasuredStep& step) {
  return starts_with_any(step,
                         {"qwen2-amp", "gemma-amp", "falcon-serial", "swin-amp", "clip-text-amp"});
}

// Strides of more than 1024 elements that Inductor pads weigh more where widths are small.
bool is_padded(const MeasuredStep& step) {
  return starts_with_any(step, {"t5", "flan-t5", "siglip", "clip", "vit-amp-bf16-math"});
}

bool is_by_op(const MeasuredStep& step) { return step.strategy == "checkpoint:op"; }

// Norms of single heads write fp32 under autocast, which is taken for 16 bits here.
bool is_known_miss_by_op(const MeasuredStep& step) {
  return is_by_op(step) && starts_with_any(step, {"qwen3-amp"});
}

// The same strides, of the parts that a rotation has swapped; and Gemma 2's mask, which each graph
// is given.
bool is_padded_by_op(const MeasuredStep& step) {
  return is_by_op(step) && starts_with_any(step, {"llama-gqa", "gemma2"});
}

TEST(CompiledSteps, KeepWhatThePartitionerKeeps) {
  EXPECT_GE(steps().size(), 124u);
  for (const MeasuredStep& step : steps()) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    if (is_known_miss(step)) continue;
    EXPECT_LE(std::abs(percent_off(step.predicted.saved, step.measured.saved)),
              is_padded(step) ? 0.6 : 0.2)
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
  }
  EXPECT_LE(median(off(steps(), &StepBytes::saved)), 0.06);
}

TEST(CompiledSteps, HaveThePredictedPeaks) {
  const std::vector<double> distances = off(steps(), &StepBytes::allocated);
  EXPECT_LE(median(distances), 1.5);
  EXPECT_LE(distances.back(), 10);
}

TEST(CompiledBlocks, KeepWhatThePartitionerKeeps) {
  EXPECT_GE(steps_of_blocks().size(), 107u);
  for (const MeasuredStep& step : steps_of_blocks()) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    if (is_known_miss_by_op(step)) continue;
    EXPECT_LE(std::abs(percent_off(step.predicted.saved, step.measured.saved)),
              is_padded_by_op(step) ? 1 : 0.1)
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
  }
  EXPECT_LE(median(off(steps_of_blocks(), &StepBytes::saved)), 0.01);
}

// What a policy has kept of calls, to the byte.
TEST(CompiledBlocks, KeepByOpWhatThePolicySays) {
  int count = 0;
  for (const MeasuredStep& step : steps_of_blocks()) {
    if (!is_by_op(step) || is_known_miss_by_op(step) || is_padded_by_op(step)) continue;
    EXPECT_EQ(step.predicted.saved, step.measured.saved) << step.name;
    ++count;
  }
  EXPECT_EQ(count, 11);
}

TEST(CompiledBlocks, HaveThePredictedPeaks) {
  const std::vector<double> allocated = off(steps_of_blocks(), &StepBytes::allocated);
  EXPECT_LE(median(allocated), 0.1);
  EXPECT_LE(allocated.back(), 8);
  EXPECT_LE(off(steps_of_blocks(), &StepBytes::reserved).back(), 8);
}

// Whose linears are torchao's in eight bits.
TEST(CompiledBlocks, InEightBitsKeepWhatThePartitionerKeeps) {
  const std::vector<MeasuredStep> steps =
      compiled_steps(TIDEMARK_TESTS_DIR "/reference/steps_compiled_float8.json");
  EXPECT_GE(steps.size(), 24u);
  int count = 0;
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    const double percent = std::abs(percent_off(step.predicted.saved, step.measured.saved));
    EXPECT_LE(percent, starts_with_any(step, {"llama-wide"}) ? 1.7 : 0.25)  // padded strides
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
    if (percent < 0.003) ++count;  // of 4 bytes per linear by op
  }
  EXPECT_EQ(count, 14);
  const std::vector<double> allocated = off(steps, &StepBytes::allocated);
  EXPECT_LE(median(allocated), 0.5);
  EXPECT_LE(allocated.back(), 3);
}

// Of ranks that share parameters, whose wrappers stand around compiled blocks.
TEST(CompiledBlocks, OfRanksHaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      compiled_steps(TIDEMARK_TESTS_DIR "/reference/steps_compiled_replicas.json");
  EXPECT_GE(steps.size(), 17u);
  const std::vector<double> allocated = off(steps, &StepBytes::allocated);
  EXPECT_LE(median(allocated), 0.05);
  EXPECT_LE(allocated.back(), 1.5);
  for (const MeasuredStep& step : steps) {
    if (step.name.find("fsdp2") == std::string::npos) continue;
    EXPECT_LE(std::abs(percent_off(step.predicted.reserved, step.measured.reserved)), 5)
        << step.name;
  }
}

}  // namespace
}  // namespace tidemark::compiled_steps_test
