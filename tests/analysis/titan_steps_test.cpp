// Steps of torchtitan's LLaMA, eager and with compiled blocks, beside PyTorch's own allocator
// (steps_titan.json and steps_titan_compiled.json, made by scripts/capture_steps).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/measured_steps.h"

namespace tidemark::titan_steps_test {
namespace {

const std::vector<MeasuredStep>& eager_steps() {
  static const std::vector<MeasuredStep> all =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_titan.json");
  return all;
}

// Of the table of turns, which is a buffer there and not counted among what is saved.
std::int64_t table_bytes(const MeasuredStep& step) {
  const std::string_view name(step.name);
  const std::int64_t head_width = name.starts_with("llama-round") ? 32
                                  : name.starts_with("llama-gqa") ? 40
                                                                  : 64;
  return *step.options.sequence * head_width * 4;
}

TEST(TitanSteps, SaveWhatIsPredicted) {
  EXPECT_EQ(eager_steps().size(), 54u);
  int count = 0;
  for (const MeasuredStep& step : eager_steps()) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    if (step.strategy == "checkpoint:op") continue;  // of which nodes hold another part
    EXPECT_EQ(step.predicted.saved - step.measured.saved, table_bytes(step)) << step.name;
    ++count;
  }
  EXPECT_EQ(count, 36);
}

// But for scalars, and a number per token of a norm that is held a little longer.
TEST(TitanSteps, HaveThePredictedPeaks) {
  for (const MeasuredStep& step : eager_steps()) {
    EXPECT_LE(std::abs(step.predicted.live - step.measured.live), 3200) << step.name;
    EXPECT_LE(std::abs(percent_off(step.predicted.allocated, step.measured.allocated)), 0.005)
        << step.name;
    EXPECT_LE(std::abs(percent_off(step.predicted.reserved, step.measured.reserved)), 5)
        << step.name;
  }
}

const std::vector<MeasuredStep>& compiled_titan_steps() {
  static const std::vector<MeasuredStep> all =
      compiled_steps(TIDEMARK_TESTS_DIR "/reference/steps_titan_compiled.json");
  return all;
}

// To the byte, but where Inductor pads strides of odd sizes of grouped heads.
TEST(TitanBlocks, KeepWhatThePartitionerKeeps) {
  EXPECT_EQ(compiled_titan_steps().size(), 72u);
  int count = 0;
  for (const MeasuredStep& step : compiled_titan_steps()) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    if (step.options.shard) continue;  // whose nodes hold what is gathered
    const std::int64_t off = step.predicted.saved - table_bytes(step) - step.measured.saved;
    if (off == 0) ++count;
    EXPECT_LE(std::abs(off), step.name.starts_with("llama-gqa") ? 1600 : 0) << step.name;
  }
  EXPECT_EQ(count, 48);
}

// What a graph takes while it makes all of a block again is an estimate.
TEST(TitanBlocks, HaveThePredictedPeaks) {
  int count = 0;
  for (const MeasuredStep& step : compiled_titan_steps()) {
    const double percent = std::abs(percent_off(step.predicted.allocated, step.measured.allocated));
    if (percent <= 0.006) ++count;
    EXPECT_LE(percent, step.strategy == "checkpoint" ? 5.4 : 3.2) << step.name;
    EXPECT_LE(std::abs(percent_off(step.predicted.reserved, step.measured.reserved)), 9)
        << step.name;
  }
  EXPECT_EQ(count, 32);
}

// fp32 shards under fully_shard that are computed with in bf16, as torchtitan trains.
TEST(TitanBlocks, OfRanksHaveThePredictedPeaks) {
  int count = 0;
  for (const MeasuredStep& step : compiled_titan_steps()) {
    if (!step.options.shard) continue;
    ++count;
    EXPECT_LE(std::abs(percent_off(step.predicted.allocated, step.measured.allocated)),
              step.strategy == "checkpoint" ? 5.2 : 1.4)
        << step.name;
    EXPECT_LE(std::abs(percent_off(step.predicted.reserved, step.measured.reserved)), 4.8)
        << step.name;
  }
  EXPECT_EQ(count, 18);
}

}  // namespace
}  // namespace tidemark::titan_steps_test
