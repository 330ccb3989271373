// Losses by chunks and bases in four and eight bits beside what ran in PyTorch's own allocator with
// bitsandbytes 0.50.2 (steps_heads_and_bases.json), Liger's kernels, 0.6.4 (steps_liger.json), and
// adapters of peft 0.21 (steps_adapters.json), and activations that are not the family's own
// (steps_activations.json), heads that share the embedding's weight (steps_tied.json), and models'
// own checkpointing (steps_checkpointed.json), also under a policy (steps_policy.json), and linears
// in eight bits as torchao 0.9 and 0.18 run them (steps_fp8*.json); all made by
// scripts/capture_steps/capture.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/measured_steps.h"

namespace tidemark::measured_heads_test {
namespace {

const std::vector<MeasuredStep>& head_steps() {
  static const std::vector<MeasuredStep> all =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_heads_and_bases.json");
  return all;
}

double off(const MeasuredStep& step, std::int64_t StepBytes::*number) {
  return std::abs(percent_off(step.predicted.*number, step.measured.*number));
}

TEST(MeasuredHeads, HaveThePredictedPeaks) {
  EXPECT_GE(head_steps().size(), 13u);
  for (const MeasuredStep& step : head_steps()) {
    EXPECT_LE(off(step, &StepBytes::live), 1.2)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 3)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
    // What a node names beside its saved tensors, as int8's, no hook sees.
    if (step.options.base == BaseWeights::Int8) continue;
    EXPECT_LE(off(step, &StepBytes::saved), 1)
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
  }
}

TEST(MeasuredLiger, HasThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_liger.json");
  EXPECT_EQ(steps.size(), 31u);
  for (const MeasuredStep& step : steps) {
    EXPECT_LE(off(step, &StepBytes::live), 0.3)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 3.5)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

TEST(MeasuredAdapters, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_adapters.json");
  EXPECT_EQ(steps.size(), 33u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
    // Behind a classifier, whose loss is small, the peak lies in the last block's backward.
    const bool classifies =
        !step.options.tuning.whole.empty() &&
        (step.options.tuning.whole[0] == "classifier" || step.options.tuning.whole[0] == "score");
    // T5's own zeros have a gradient that lasts, and why GPT-2 needs more is not known.
    const bool is_wide = step.name.starts_with("t5") || step.name.starts_with("gpt2-bf16-ch") ||
                         step.name.starts_with("gpt2-amp-bf16-ch");
    EXPECT_LE(off(step, &StepBytes::live), classifies ? 2.8
                                           : is_wide  ? 1.1
                                                      : 0.5)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    // Why one step has blocks of 4 MB less than is predicted was not looked for.
    EXPECT_LE(off(step, &StepBytes::allocated),
              step.name == "llama-gqa-fp32-saved-both" ? 4.1 : 2.2)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// With few words the peak is where a block runs again, or in its gradients: what the function's
// variables and arguments hold counts.
TEST(MeasuredCheckpoints, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_checkpointed.json");
  EXPECT_EQ(steps.size(), 42u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_LE(off(step, &StepBytes::live), 1.9)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 1.7)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Results of attention and of every second product stay (torchtitan's SelectiveAC), read or not.
// The counters of fused attention's random numbers, of 8 bytes each, are not followed; why these
// few are off was not looked for.
TEST(MeasuredPolicies, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_policy.json");
  EXPECT_EQ(steps.size(), 63u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    const bool is_t5 = step.name.starts_with("t5");
    const bool is_off = step.name.starts_with("gpt_neox-bf16") ||
                        step.name.starts_with("bert-amp") || step.name.starts_with("falcon");
    EXPECT_LE(off(step, &StepBytes::live), is_t5    ? 3.1
                                           : is_off ? 1.7
                                                    : 0.4)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), is_t5 ? 2.2 : 1.1)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Networks of 20 to 60 MiB, of which a block that is not split may count 1 MiB too much.
TEST(MeasuredActivations, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_activations.json");
  EXPECT_EQ(steps.size(), 45u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_LE(off(step, &StepBytes::live), 0.4)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 3.6)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// The head's gradient is a view, to which the engine does not add: a vocabulary's sum and both its
// parts are there at once. What is left is BERT's mask and the allocator's 512-byte blocks.
TEST(MeasuredTiedHeads, AreAddedOutOfPlace) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_tied.json");
  EXPECT_EQ(steps.size(), 6u);
  for (const MeasuredStep& step : steps) {
    EXPECT_LE(off(step, &StepBytes::live), 0.05)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 0.1)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Learned tokens in front of a frozen decoder (steps_prompts.json).
TEST(MeasuredPrompts, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_prompts.json");
  EXPECT_EQ(steps.size(), 18u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
    EXPECT_LE(off(step, &StepBytes::saved), 0.001)  // seeds and single numbers
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
    EXPECT_LE(off(step, &StepBytes::live), 0.2)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    // Live is right; which requests meet blocks that the allocator does not split is not.
    EXPECT_LE(off(step, &StepBytes::allocated), step.name == "llama-gqa-bf16-math-prompt" ? 4.9 : 2)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Learned keys and values in front of those of each block (steps_prefix.json).
TEST(MeasuredPrefixes, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_prefix.json");
  EXPECT_EQ(steps.size(), 25u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
    EXPECT_LE(off(step, &StepBytes::saved), 0.001)  // seeds and single numbers
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
    EXPECT_LE(off(step, &StepBytes::live), 0.2)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated),
              step.name == "gpt2-amp-bf16-math-prefix" ? 2.7 : 1.5)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Pairs beside a second model, the base under adapters, or what was said before (steps_dpo.json).
// The reference's forward makes the peak of LoRA in fp32, the loss's backward the others.
TEST(MeasuredPreferences, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_dpo.json");
  EXPECT_EQ(steps.size(), 17u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
    EXPECT_LE(off(step, &StepBytes::saved), 0.001)
        << step.name << " saved " << step.predicted.saved << " against " << step.measured.saved;
    EXPECT_LE(off(step, &StepBytes::live), 0.02)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 1.7)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

// Frozen weights in eight-bit floats under adapters (steps_fp8_base_transformers-5.json).
TEST(MeasuredFp8Bases, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_fp8_base_transformers-5.json");
  EXPECT_EQ(steps.size(), 18u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
    EXPECT_LE(off(step, &StepBytes::live), 0.05)
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    EXPECT_LE(off(step, &StepBytes::allocated), 1.1)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

class MeasuredFp8 : public testing::TestWithParam<const char*> {};

TEST_P(MeasuredFp8, HasThePredictedPeaks) {
  const std::vector<MeasuredStep> steps =
      measured_steps(std::string(TIDEMARK_TESTS_DIR "/reference/") + GetParam());
  EXPECT_GE(steps.size(), 26u);
  for (const MeasuredStep& step : steps) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_LE(off(step, &StepBytes::live), 0.6)  // of tensors inside of an RMSNorm's backward
        << step.name << " live " << step.predicted.live << " against " << step.measured.live;
    // Too low by 1.18 % for Qwen2 in fp32; by 1.06 while its mask counted as there all the time.
    EXPECT_LE(off(step, &StepBytes::allocated), 1.2)
        << step.name << " allocated " << step.predicted.allocated << " against "
        << step.measured.allocated;
  }
}

INSTANTIATE_TEST_SUITE_P(Torchao, MeasuredFp8,
                         testing::Values("steps_fp8.json", "steps_fp8_transformers-5.json"));

}  // namespace
}  // namespace tidemark::measured_heads_test
