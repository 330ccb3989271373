// What PyTorch does on devices that lack bf16, TF32 or flash attention.
#include "simulator/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::kernel_choice_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(KernelChoice, FollowsTheComputeCapability) {
  using enum FusedAttention;
  const Device v100 = find_device("v100-16gb"), t4 = find_device("t4"),
               a100 = find_device("a100-80gb");
  for (const Device& old : {v100, t4}) {
    EXPECT_EQ(fused_attention(old, Precision::AmpFp16), MemoryEfficient);
    EXPECT_EQ(fused_attention(old, Precision::Fp32), MemoryEfficient);
    EXPECT_EQ(fused_attention(old, Precision::Bf16), None);
    EXPECT_EQ(fused_attention(old, Precision::AmpBf16), None);
  }
  EXPECT_EQ(fused_attention(a100, Precision::AmpFp16), Flash);
  EXPECT_EQ(fused_attention(a100, Precision::Bf16), Flash);
  EXPECT_EQ(fused_attention(a100, Precision::Fp32), MemoryEfficient);
  EXPECT_EQ(fused_attention(a100, Precision::Tf32), MemoryEfficient);
}

TEST(KernelChoice, KnowsTheCapabilityOfEachDevice) {
  for (const Device& device : known_devices()) {
    ASSERT_TRUE(capability_of(device).has_value()) << device.name;
    EXPECT_TRUE(device.sources.contains("compute_capability")) << device.name;
    // Devices without bf16 units are those before 8.0.
    const bool has_bf16 = device.flops_per_second[static_cast<std::size_t>(MathUnit::Bf16)] > 0;
    EXPECT_EQ(has_bf16, *capability_of(device) >= 80) << device.name;
  }
  Device processor = find_device("t4");
  processor.compute_capability = "none";
  EXPECT_EQ(capability_of(processor), std::nullopt);
  EXPECT_EQ(fused_attention(processor, Precision::Fp32), FusedAttention::Flash);
}

Comparison asked(const char* device, const StepOptions& step, const char* model = "vit-ti-16") {
  Scenario scenario;
  scenario.model = find_model(model);
  scenario.step = step;
  scenario.device = find_device(device);
  scenario.strategies = {parse_strategy("vanilla")};
  return compare(scenario);
}

std::string refusal(const char* device, const StepOptions& step) {
  try {
    asked(device, step);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(KernelChoice, ComposesAttentionThatNoKernelTakes) {
  const Comparison on_t4 = asked("t4", {.precision = Precision::Bf16});
  EXPECT_EQ(on_t4.attention, Attention::Math);  // PyTorch's own composition
  EXPECT_THAT(on_t4.notes,
              testing::ElementsAre(
                  HasSubstr("emulates the products at fp32's rate"),
                  HasSubstr("no fused kernel for this attention in bf16 on NVIDIA T4 (compute "
                            "capability 7.5): its scores")));
  EXPECT_EQ(asked("a100-80gb", {.precision = Precision::Bf16}).attention, Attention::Flash);
}

// DeBERTa's code multiplies and adds its scores itself, of keys that it scaled: nobody chose that.
TEST(KernelChoice, SaysNothingOfAttentionThatTheModelsCodeComposes) {
  const auto named = testing::Contains(HasSubstr("no fused kernel for this attention"));
  for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::AmpFp16})
    EXPECT_THAT(asked("a100-80gb", {.precision = precision}, "deberta-v3-base").notes,
                testing::Not(named));
  for (const char* model : {"gpt2", "llama-3.2-1b", "vit-ti-16"})
    for (const Precision precision : {Precision::Bf16, Precision::AmpBf16})
      EXPECT_THAT(asked("t4", {.precision = precision}, model).notes, named) << model;
}

TEST(KernelChoice, SaysWhereAnOptionChangesNothing) {
  EXPECT_THAT(asked("v100-16gb", {.precision = Precision::Tf32}).notes,
              testing::Contains(HasSubstr("tf32 changes nothing")));
  EXPECT_EQ(asked("v100-16gb", {.precision = Precision::Tf32}).rows[0].step,
            asked("v100-16gb", {.precision = Precision::Fp32}).rows[0].step);
  EXPECT_THAT(asked("a100-80gb", {.precision = Precision::AmpFp16}).notes, IsEmpty());
  EXPECT_THAT(asked("a100-80gb", {.precision = Precision::Fp32}).notes,
              testing::ElementsAre(HasSubstr("memory-efficient attention kernel")));
}

// Of DeepSeek's latent attention, whose queries have a part with positions, too.
TEST(KernelChoice, SaysThatFlashTakesValuesAsWideAsQueries) {
  const auto notes = [](std::string_view framework) {
    Scenario scenario;
    LatentConfig latent{.key_rank = 32, .plain_width = 16, .rotary_width = 8, .value_width = 16};
    DecoderConfig config{.family = "deepseek-v3", .width = 64, .depth = 1, .heads = 4, .mlp = 64};
    config.key_heads = 4, config.vocabulary = 64, config.positions = 32, config.latent = latent;
    scenario.model = {"small", std::string(config.family), "small", "", config};
    scenario.step = {.batch = 1, .precision = Precision::Bf16};
    scenario.step.framework = framework;
    scenario.device = find_device("h100");
    scenario.strategies = {parse_strategy("vanilla")};
    return compare(scenario).notes;
  };
  EXPECT_THAT(notes("transformers-4.57"),
              testing::Contains(HasSubstr("flash takes values as wide as queries, not 16 and 24")));
  EXPECT_THAT(notes("megatron"), testing::Not(testing::Contains(HasSubstr("PyTorch takes"))));
}

// Where it was measured, and the values have 16 bits.
TEST(KernelChoice, SaysWhichRowsAreSlow) {
  const StepOptions half{.batch = 1, .precision = Precision::Bf16};
  EXPECT_THAT(
      asked("h100", half, "gpt2").notes,
      testing::ElementsAre("'lm_head' has rows of 50257 elements, which begin in the middle of "
                           "16 bytes: its products reach 0.15 of the rate of others (50304 "
                           "elements would reach all of it)"));
  EXPECT_THAT(
      asked("h200", half, "bert-base").notes,
      testing::ElementsAre(HasSubstr("30522 elements, which begin in the middle of 16 bytes: "
                                     "its products reach 0.28 of")));
  EXPECT_THAT(asked("h100", half, "llama-3.2-1b").notes, IsEmpty());
  EXPECT_THAT(asked("a100-80gb", half, "gpt2").notes, IsEmpty());
}

TEST(KernelChoice, RefusesWhatPyTorchRefuses) {
  EXPECT_THAT(
      refusal("t4", {.precision = Precision::Bf16, .attention = Attention::Flash}),
      HasSubstr("flash: this kernel does not take bf16 on NVIDIA T4 (compute capability 7.5) "
                "(use amp-fp16, or --attention sdpa)"));
  EXPECT_THAT(refusal("a100-80gb", {.precision = Precision::Fp32, .attention = Attention::Flash}),
              HasSubstr("flash: this kernel does not take fp32"));
  EXPECT_THAT(
      refusal("t4", {.precision = Precision::Bf16, .attention = Attention::MemoryEfficient}),
      HasSubstr("mem-efficient: this kernel does not take bf16"));
  EXPECT_EQ(
      refusal("t4", {.precision = Precision::AmpFp16, .attention = Attention::MemoryEfficient}),
      "");
  EXPECT_THAT(refusal("t4", {.precision = Precision::AmpBf16, .framework = "torch-1.13"}),
              HasSubstr("refuses amp-bf16"));
  EXPECT_EQ(refusal("t4", {.precision = Precision::AmpBf16}), "");
}

}  // namespace
}  // namespace tidemark::kernel_choice_test
