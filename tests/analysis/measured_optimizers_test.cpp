// Optimizers in every form that ran in PyTorch 2.6's own allocator (steps_optimizers.json, made by
// scripts/capture_steps/capture.py): what they keep, and what their step takes, to the byte.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/measured_steps.h"

namespace tidemark::measured_optimizers_test {
namespace {

const std::vector<MeasuredStep>& optimizer_steps() {
  static const std::vector<MeasuredStep> all =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_optimizers.json");
  return all;
}

// PyTorch keeps a count of steps per parameter on the GPU where the update is fused, transformers
// and bitsandbytes some numbers beside the moments.
TEST(MeasuredOptimizers, KeepWhatIsPredicted) {
  EXPECT_GE(optimizer_steps().size(), 90u);
  for (const MeasuredStep& step : optimizer_steps())
    EXPECT_LE(std::abs(step.predicted.state - step.measured.state), 2400) << step.name;
}

// One parameter at a time, the largest one and the one before it decide: the order is that of the
// modules' code in PyTorch, and that of the forward here.
TEST(MeasuredOptimizers, TakeWhatIsPredicted) {
  for (const MeasuredStep& step : optimizer_steps()) {
    if (step.options.update_in_backward) continue;
    const bool is_loop = step.options.optimizer_form == OptimizerForm::ForLoop;
    EXPECT_LE(std::abs(percent_off(step.predicted.update, step.measured.update)),
              is_loop ? 1.8 : 0.1)
        << step.name << ": " << step.predicted.update << " against " << step.measured.update;
  }
}

// GPT-2's tied table apart: PyTorch adds its two gradients up out of place.
TEST(MeasuredOptimizers, HaveThePredictedPeaks) {
  for (const MeasuredStep& step : optimizer_steps()) {
    if (step.name.starts_with("gpt2")) continue;
    EXPECT_LE(std::abs(percent_off(step.predicted.live, step.measured.live)), 0.6) << step.name;
    EXPECT_LE(std::abs(percent_off(step.predicted.allocated, step.measured.allocated)), 3)
        << step.name << ": " << step.predicted.allocated << " against " << step.measured.allocated;
  }
}

}  // namespace
}  // namespace tidemark::measured_optimizers_test
