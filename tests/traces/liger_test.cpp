// Liger's kernels: what of a decoder they replace, what they keep, whom they do not fit. Against
// PyTorch's own allocator in tests/analysis/measured_heads_test.cpp.
#include "traces/models/liger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::liger_test {
namespace {

using testing::HasSubstr;

Trace with_liger(const char* model, StepOptions options = {}) {
  options.batch = 1, options.sequence = 16, options.liger = true;
  if (!options.precision) options.precision = Precision::Bf16;
  return build_trace(find_model(model), options);
}

std::int64_t count_of(const Trace& trace, std::string_view operation) {
  return std::ranges::count(trace.opaque_rows, operation, &OpaqueRow::operation);
}

TEST(Liger, TakesTheNormsProductsRotationsAndTheLoss) {
  const Trace trace = with_liger("llama-7b");
  EXPECT_EQ(count_of(trace, "liger_kernel::rms_norm"), 65);
  EXPECT_EQ(count_of(trace, "liger_kernel::swiglu"), 32);
  EXPECT_EQ(count_of(trace, "liger_kernel::rope"), 32);
  EXPECT_EQ(count_of(trace, "liger_kernel::fused_linear_cross_entropy"), 1);
  for (const OpKind kind : {OpKind::RmsNorm, OpKind::Silu, OpKind::Rope, OpKind::LogSoftmax})
    EXPECT_EQ(std::ranges::count(trace.ops, kind, &Op::kind), 0) << to_string(kind);
  EXPECT_EQ(count_of(with_liger("gemma-2b"), "liger_kernel::geglu"), 18);
}

TEST(Liger, LeavesTheLossThatWasAskedFor) {
  const Trace trace = with_liger("llama-7b", {.loss = parse_token_loss("chunked:2")});
  EXPECT_EQ(count_of(trace, "liger_kernel::fused_linear_cross_entropy"), 0);
  EXPECT_EQ(count_of(trace, "liger_kernel::rms_norm"), 65);
}

// x + norm(F(x)) has a gradient that the shortcut has, too.
TEST(Liger, WritesOverTheIncomingGradientBeforeABranchOnly) {
  const auto hands_on = [](const Trace& trace) {
    return std::ranges::count_if(trace.opaque_rows, [](const OpaqueRow& row) {
      return row.operation == "liger_kernel::rms_norm" && row.handed_on == 0b01;
    });
  };
  EXPECT_EQ(hands_on(with_liger("llama-7b")), 65);
  EXPECT_EQ(hands_on(with_liger("olmo-2-7b")), 0);
  EXPECT_EQ(hands_on(with_liger("llama-7b", {.tuning = parse_tuning("lora:r=4,targets=q")})), 0);
}

std::string refusal(const char* model) {
  try {
    require_used_options(with_liger(model));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "taken";
}

TEST(Liger, IsRefusedWhereItHasNoKernels) {
  EXPECT_EQ(refusal("mistral-7b"), "taken");
  EXPECT_THAT(refusal("gpt2"), HasSubstr("known for LLaMA and its kin, not for gpt2"));
  EXPECT_THAT(refusal("t5-base"), HasSubstr("known for LLaMA and its kin"));
  EXPECT_THAT(refusal("pythia-1.4b"), HasSubstr("for LLaMA's kin"));
  EXPECT_THAT(refusal("mixtral-8x7b"), HasSubstr("its experts"));
  EXPECT_THAT(refusal("deepseek-v2"), HasSubstr("its experts"));
  EXPECT_THAT(refusal("gemma-2-9b"), HasSubstr("its capped logits"));
  EXPECT_THAT(refusal("phi-4"), "taken");
}

}  // namespace
}  // namespace tidemark::liger_test
