// Compiled steps of whole models: sound, with fewer tensors than eager ones, and refused where
// nothing is known.
#include "simulator/compiled/compiled_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/saved.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/strategies/strategy.h"
#include "tests/support/brief_model.h"
#include "tests/traces/small_trace.h"
#include "traces/models/config_reader.h"
#include "traces/presets.h"

namespace tidemark::compiled_trace_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* compiled_row = "torch-compile-2.6";

StepOptions step_of(const char* framework, Precision precision, const char* tuning = "full") {
  StepOptions step{.batch = 2, .framework = framework};
  step.precision = precision;
  step.tuning = parse_tuning(tuning);
  return step;
}

Trace built(const char* model, StepOptions step) {
  Model known = brief(find_model(model));
  if (auto* config = std::get_if<DecoderConfig>(&known.config)) config->depth = 2;
  if (!sees_images(known.config)) step.sequence = 24;
  return build_rank_trace(known, step);
}

std::string refusal_of(const char* model, const StepOptions& step) {
  try {
    built(model, step);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// The op's row, of a compiled gpt2 in fp32 without dropout.
const OpaqueRow& row_named(const Trace& trace, std::string_view op) {
  const OpaqueRow* row = opaque_row(trace, trace[op_named(trace, op)]);
  if (!row) throw std::out_of_range("no opaque op " + std::string(op));
  return *row;
}

TEST(CompiledTrace, OfModelsIsSound) {
  for (const char* model :
       {"gpt2", "llama-3.2-1b", "qwen2-7b", "bert-base", "modernbert-base", "vit-b-16", "deit-ti",
        "swin-t", "t5-base", "gemma-2b", "gemma-2-9b", "gemma-3-1b", "pythia-1.4b", "phi-3-mini",
        "falcon-7b", "falcon-40b", "olmo-2-7b", "clip-vit-b-32-vision", "siglip-base-text"})
    for (const Precision precision : {Precision::Fp32, Precision::AmpBf16, Precision::Bf16})
      for (const char* tuning : {"full", "lora:r=4,targets=all,dropout=0.1", "frozen:*norm*"}) {
        SCOPED_TRACE(std::string(model) + " " + std::string(to_string(precision)) + " " + tuning);
        const auto trace =
            std::make_shared<const Trace>(built(model, step_of(compiled_row, precision, tuning)));
        ASSERT_THAT(check(*trace), IsEmpty());
        const PlannedStep step = plan_step(trace, parse_strategy("vanilla"));
        ASSERT_EQ(step.refusal, "");
        EXPECT_THAT(validate(*trace, lower(*trace, step.plan)), IsEmpty());
      }
}

// Heads that no fused kernel takes, under autocast: the products of a composed attention are in
// fp32, and what their backward reads is in bf16. It is kept so, in half of the bytes.
TEST(CompiledTrace, KeepsOperandsOfComposedAttentionAsTheBackwardCastsThem) {
  Model model = find_model("gpt2");
  auto& config = std::get<Gpt2Config>(model.config);
  config.depth = 1, config.width = 198, config.heads = 6;
  StepOptions step = step_of(compiled_row, Precision::AmpBf16);
  step.sequence = 24;
  const auto trace = std::make_shared<const Trace>(build_rank_trace(model, step));
  ASSERT_THAT(check(*trace), IsEmpty());
  const OpaqueRow& scores = row_named(*trace, "blocks.0.attn.scores");
  EXPECT_EQ(scores.operation, "matmul");
  // 2 samples, 6 heads, 24 x 33 and 33 x 24
  EXPECT_EQ(scores.forward.flops, 2 * (2 * 6 * 24 * 24) * 33);
  EXPECT_EQ(scores.backward.flops, 2 * scores.forward.flops.value());
  const Op& op = (*trace)[op_named(*trace, "blocks.0.attn.scores")];
  std::vector<DType> saved;
  for (int i = 0; i < op.inputs; ++i)
    if ((scores.saved & input_bit(i)) != 0) saved.push_back((*trace)[operand(*trace, op, i)].dtype);
  EXPECT_EQ(saved, (std::vector{DType::BFloat16, DType::BFloat16}));
  const PlannedStep planned = plan_step(trace, parse_strategy("vanilla"));
  EXPECT_THAT(validate(*trace, lower(*trace, planned.plan)), IsEmpty());
}

TEST(CompiledTrace, KeepsLessThanTheEagerStep) {
  const auto kept = [](const char* framework) {
    const auto trace =
        std::make_shared<const Trace>(built("gpt2", step_of(framework, Precision::AmpBf16)));
    return saved_bytes(*trace, plan_step(trace, parse_strategy("vanilla")).plan).unique;
  };
  EXPECT_LT(kept(compiled_row).count * 3, kept("transformers-4.57").count * 2);
}

// h = add1 is read again behind the block: the sum, the normalized h and 1/σ are written beside y.
TEST(CompiledTrace, FusesAResidualIntoTheNormBehindIt) {
  StepOptions step = step_of(compiled_row, Precision::Fp32);
  step.dropout = 0;
  const Trace trace = built("gpt2", step);
  const Op& op = trace[op_named(trace, "blocks.0.norm2")];
  std::set<std::string> outputs;
  for (const TensorId output : trace.outputs(op)) outputs.insert(trace[output].name);
  EXPECT_EQ(outputs, (std::set<std::string>{"blocks.0.add1", "blocks.0.norm2",
                                            "blocks.0.norm2.normalized", "blocks.0.norm2.div"}));
  const OpaqueRow& row = row_named(trace, "blocks.0.norm2");
  EXPECT_EQ(row.operation, "fused add, layer_norm");
  // The gradients of both addends lie in the memory of the sum's.
  EXPECT_EQ(trace[trace.outputs(op)[0]].name, "blocks.0.add1");
  EXPECT_EQ(std::popcount(row.handed_on), 2);
}

// SiLU stands before `up` in the model's code; it is fused with the product behind it.
TEST(CompiledTrace, RunsWhatItCanRightBeforeItIsRead) {
  const Trace trace = built("llama-3.2-1b", step_of(compiled_row, Precision::Fp32));
  EXPECT_EQ(row_named(trace, "blocks.0.mlp.product").operation, "fused silu, mul");
  EXPECT_THROW(tensor_named(trace, "blocks.0.mlp.silu"), std::out_of_range);
}

// The model returns its logits, so the backward begins with zeros of their size.
TEST(CompiledTrace, HasZerosForTheGradientOfLogits) {
  const Trace llama = built("llama-3.2-1b", step_of(compiled_row, Precision::Fp32));
  EXPECT_EQ(row_named(llama, "loss").backward.workspace,
            size(llama[tensor_named(llama, "lm_head")]));
  const Trace gpt2 = built("gpt2", step_of(compiled_row, Precision::Fp32));
  EXPECT_EQ(row_named(gpt2, "loss").backward.workspace, Bytes{});
}

TEST(CompiledTrace, OfRanksIsRefused) {
  StepOptions step = step_of(compiled_row, Precision::Fp32);
  step.mesh[Axis::Data] = 4;
  EXPECT_THAT(refusal_of("gpt2", step), HasSubstr("several ranks is not known"));
}

TEST(CompiledTrace, OfUnknownOpsIsRefused) {
  StepOptions step = step_of(compiled_row, Precision::Bf16);
  step.liger = true;
  EXPECT_THAT(refusal_of("llama-3.2-1b", step), HasSubstr("is not known here"));
}

TEST(CompiledTrace, LeavesStrategiesNothingToDecide) {
  const auto trace =
      std::make_shared<const Trace>(built("gpt2", step_of(compiled_row, Precision::Fp32)));
  for (const char* strategy : {"checkpoint", "mesa", "approx-bp", "offload", "reversible"})
    EXPECT_THAT(plan_step(trace, parse_strategy(strategy)).refusal,
                HasSubstr("torch.compile decides"));
}

// DINOv2's token for masked patches, which no op of a step reads, is a parameter all the same.
TEST(CompiledTrace, KeepsParametersThatNobodyReads) {
  const auto parameters = [](const char* framework) {
    const Model model =
        read_model_config(R"({"model_type": "dinov2", "num_hidden_layers": 2})", "dinov2");
    const Trace trace = build_rank_trace(model, step_of(framework, Precision::Fp32));
    std::set<std::string> names;
    for (const Tensor& tensor : trace.tensors)
      if (tensor.category == Category::Parameter) names.insert(tensor.name);
    return names;
  };
  EXPECT_EQ(parameters(compiled_row), parameters("transformers-4.57"));
  EXPECT_THAT(parameters(compiled_row), testing::Contains("mask_token"));
}

// A weight and statistics for each of 32 heads: more than a fused op has operands.
TEST(CompiledTrace, OfNormsOfManyHeadsIsRefused) {
  EXPECT_THAT(refusal_of("stablelm-2-12b", step_of(compiled_row, Precision::Fp32)),
              HasSubstr("norms of single heads"));
}

// Whose compiled steps nobody has compared with PyTorch's, or which are several graphs: OPT and
// BART draw a number that Python looks at, for each block.
TEST(CompiledTrace, OfOtherFamiliesIsRefused) {
  for (const char* model : {"opt-1.3b", "bart-base", "mvitv2-t"})
    EXPECT_THAT(refusal_of(model, step_of(compiled_row, Precision::Fp32)),
                HasSubstr("only of the families gpt2, llama, phi"));
}

}  // namespace
}  // namespace tidemark::compiled_trace_test
