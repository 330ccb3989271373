// Families in whose heads elements turn with their neighbours: GLM-4, ERNIE 4.5 and Cohere's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/decoder_traces.h"

namespace tidemark::neighbours_test {
namespace {

using namespace decoder_traces;
using testing::ElementsAre;
using testing::HasSubstr;

DecoderConfig read(std::string_view json) { return config_of(json); }

Trace composed(std::string_view json, StepOptions options = {}) {
  if (!options.attention) options.attention = Attention::Math;
  return trace_of(json, options);
}

std::int64_t parameters(std::string_view json) { return parameters_in(composed(json)); }

std::string small(std::string_view own) {
  return fmt::format(R"({{{}, "hidden_size": 16, "num_hidden_layers": 4, "vocab_size": 31,
                          "num_attention_heads": 2, "num_key_value_heads": 1,
                          "intermediate_size": 24}})",
                     own);
}

TEST(Neighbours, PublishedSizesAreReached) {
  EXPECT_EQ(parameters(R"({"model_type": "glm4"})"), 9'400'279'040);     // GLM-4-9B-0414
  EXPECT_EQ(parameters(R"({"model_type": "ernie4_5"})"), 360'748'032);   // ERNIE-4.5-0.3B
  EXPECT_EQ(parameters(R"({"model_type": "cohere"})"), 34'980'831'232);  // Command R
  EXPECT_EQ(parameters(R"({"model_type": "cohere2", "hidden_size": 4096, "num_hidden_layers": 32,
                           "num_attention_heads": 32, "num_key_value_heads": 8,
                           "intermediate_size": 14336})"),
            8'028'033'024);  // Command R7B
}

TEST(Neighbours, HaveTheDefaultsOfTheirClasses) {
  const DecoderConfig glm = read(R"({"model_type": "glm4"})");
  EXPECT_EQ(glm.rotary_width, 64);  // half of a head
  EXPECT_EQ(glm.key_heads, 2);
  EXPECT_TRUE(glm.qkv_bias);
  EXPECT_FALSE(glm.out_bias || glm.mlp_bias || glm.tied_head);
  EXPECT_EQ(glm.block, BlockForm::SandwichNorm);
  EXPECT_EQ(glm.mlp_form, MlpForm::GatedPacked);
  EXPECT_FALSE(read(R"({"model_type": "glm4", "attention_bias": false})").qkv_bias);
  const DecoderConfig ernie = read(R"({"model_type": "ernie4_5"})");
  EXPECT_EQ(ernie.head_width, 128);  // not 1024 / 16
  EXPECT_EQ(ernie.rotary.theta, 500'000);
  EXPECT_TRUE(ernie.tied_head);
  EXPECT_FALSE(ernie.qkv_bias || ernie.mlp_bias);
  const DecoderConfig biased = read(R"({"model_type": "ernie4_5", "use_bias": true})");
  EXPECT_TRUE(biased.qkv_bias && biased.out_bias && biased.mlp_bias);
  const DecoderConfig cohere = read(R"({"model_type": "cohere"})");
  EXPECT_EQ(cohere.logit_factor, 0.0625);
  EXPECT_EQ(cohere.head_norm, HeadNorm::None);
  EXPECT_EQ(cohere.sliding_window, 0);
  EXPECT_TRUE(cohere.tied_head);
  const DecoderConfig cohere2 = read(R"({"model_type": "cohere2"})");
  EXPECT_EQ(cohere2.sliding_window, 4096);
  EXPECT_EQ(cohere2.global_every, 4);
  EXPECT_EQ(cohere2.still_every, 4);
}

// Files of transformers 5 say it among the rotation's parameters.
TEST(Neighbours, TheShareThatTurnsStandsInEitherPlace) {
  constexpr std::string_view nested =
      R"("rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.25})";
  EXPECT_EQ(read(fmt::format(R"({{"model_type": "glm4", {}}})", nested)).rotary_width, 32);
  EXPECT_EQ(read(R"({"model_type": "glm4", "partial_rotary_factor": 0.25})").rotary_width, 32);
  EXPECT_EQ(read(fmt::format(R"({{"model_type": "phi", {}}})", nested)).rotary_width, 16);
  EXPECT_THAT(error_of(fmt::format(R"({{"model_type": "cohere", {}}})", nested)),
              HasSubstr("rotating a part of each head is not modelled for this family"));
}

// cos[..., : d / 2].repeat_interleave(2): what both nodes keep is new memory in each layer.
TEST(Neighbours, EachLayerOfGlmSpreadsItsTables) {
  const Trace trace = composed(small(R"("model_type": "glm4", "head_dim": 8)"));
  const Op& turn = op_named(trace, "blocks.2.attn.k_rope");
  EXPECT_EQ(attribute(trace, turn, AttributeKey::Neighbours), 1);
  const Tensor& table = trace[trace.inputs(turn)[1]];
  EXPECT_EQ(table.shape, Shape({16, 4}));
  EXPECT_EQ(trace[table.storage].name, "blocks.2.attn.cos.repeat");
  EXPECT_EQ(trace[trace.inputs(op_named(trace, "blocks.2.attn.cos.columns"))[0]].shape,
            Shape({16, 2}));
  EXPECT_EQ(trace.inputs(turn)[1], trace.inputs(op_named(trace, "blocks.2.attn.q_rope"))[1]);
}

// The tables of all layers are the model's; q and k turn in fp32 and come back as they were.
TEST(Neighbours, CoheresHeadsTurnInFp32) {
  const Trace trace = composed(small(R"("model_type": "cohere")"), {.precision = Precision::Bf16});
  const Op& turn = op_named(trace, "blocks.2.attn.q_rope");
  EXPECT_EQ(trace[trace.inputs(turn)[0]].dtype, DType::Float32);
  EXPECT_EQ(trace[trace.inputs(turn)[1]].name, "rope.cos");
  EXPECT_EQ(trace[trace.inputs(turn)[1]].dtype, DType::BFloat16);
  EXPECT_EQ(trace[trace.outputs(turn)[0]].dtype, DType::Float32);
  const Op& round = op_named(trace, "blocks.2.attn.q_rope.round");
  EXPECT_EQ(trace[trace.outputs(round)[0]].dtype, DType::BFloat16);
}

// ERNIE's are fp32 in any precision.
TEST(Neighbours, ErniesTablesAreFp32) {
  const Trace trace =
      composed(small(R"("model_type": "ernie4_5", "head_dim": 8)"), {.precision = Precision::Bf16});
  const Op& turn = op_named(trace, "blocks.0.attn.q_rope");
  EXPECT_EQ(trace[trace.inputs(turn)[2]].dtype, DType::Float32);
}

// Two differences from the mean, what the weight multiplies, and 1/std.
TEST(Neighbours, CoheresNormKeepsThreeOfItsOwnSize) {
  const Trace trace = composed(small(R"("model_type": "cohere")"));
  const Op& norm = op_named(trace, "blocks.1.input_norm");
  std::int64_t kept = 0;
  for (const TensorId output : trace.outputs(norm))
    if (output != trace.outputs(norm)[0]) kept += size(trace[output]).count;
  EXPECT_EQ(kept, 3 * 16 * 16 * 4 + 16 * 4);
  EXPECT_EQ(std::popcount(opaque_row(trace, norm)->saved >> 16), 4);
}

TEST(Neighbours, CohereAddsTheShortcutFirst) {
  const Trace trace = composed(small(R"("model_type": "cohere")"));
  const Op& first = op_named(trace, "blocks.0.add1");
  EXPECT_EQ(trace[trace.inputs(first)[0]].name, "embed");
  EXPECT_EQ(trace[trace.inputs(first)[1]].name, "blocks.0.attn.o");
  const Op& second = op_named(trace, "blocks.0.add2");
  EXPECT_EQ(trace[trace.inputs(second)[1]].name, "blocks.0.mlp.down");
}

TEST(Neighbours, Cohere2TurnsHeadsWhereThereIsAWindow) {
  EXPECT_THAT(names_of(composed(small(R"("model_type": "cohere2", "layer_types":
                  ["sliding_attention", "full_attention", "sliding_attention",
                   "full_attention"])")),
                       OpKind::Rope),
              ElementsAre("blocks.0.attn.q_rope", "blocks.0.attn.k_rope", "blocks.2.attn.q_rope",
                          "blocks.2.attn.k_rope"));
  EXPECT_THAT(error_of(small(R"("model_type": "cohere2", "sliding_window": null)")),
              HasSubstr("/sliding_window: this family's code has no masks without a window"));
}

TEST(Neighbours, PublishedFilesLeaveNoNotes) {
  const Model model = read_model_config(
      small(R"("model_type": "cohere2", "_sliding_window_pattern": 4, "layer_switch": 4,
               "cache_implementation": "hybrid", "sliding_window_pattern": 4,
               "order_of_interleaved_layers": "local_attn_first", "rotary_pct": 1.0,
               "position_embedding_type": "rope_gptj", "use_embedding_sharing": true,
               "use_gated_activation": true, "use_parallel_block": true,
               "use_parallel_embedding": true, "head_dim": 8, "logit_scale": 0.25)"),
      "config.json");
  EXPECT_THAT(model.notes, testing::IsEmpty());
}

TEST(Neighbours, NormsOfCoheresHeadsHaveAWeightForEach) {
  const Trace trace = composed(small(R"("model_type": "cohere", "use_qk_norm": true)"));
  const Op& norm = op_named(trace, "blocks.0.attn.q_norm");
  EXPECT_EQ(trace[trace.inputs(norm)[1]].shape, Shape({2, 8}));
  const Op& of_keys = op_named(trace, "blocks.0.attn.k_norm");
  EXPECT_EQ(trace[trace.inputs(of_keys)[1]].shape, Shape({1, 8}));
}

std::string refusal_of(std::string_view json, const StepOptions& options) {
  try {
    composed(json, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Neighbours, LigersKernelsAreRefused) {
  EXPECT_THAT(refusal_of(small(R"("model_type": "ernie4_5", "head_dim": 8)"), {.liger = true}),
              HasSubstr("Liger's rotation turns elements half a head apart"));
  EXPECT_THAT(refusal_of(small(R"("model_type": "glm4", "head_dim": 8)"), {.liger = true}),
              HasSubstr("a part of them"));
  EXPECT_THAT(refusal_of(small(R"("model_type": "cohere")"), {.liger = true}),
              HasSubstr("RMSNorm"));
}

}  // namespace
}  // namespace tidemark::neighbours_test
