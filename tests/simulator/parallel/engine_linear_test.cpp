// Transformer Engine's products in eight bits, and SwiGLU in one kernel: what is kept per layer,
// what stays between steps, and that ranks of every kind are sound with them.
#include "traces/engine_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/parallel/ranks.h"
#include "traces/expert_ops.h"

namespace tidemark::engine_linear_test {
namespace {

constexpr std::int64_t h = 64, f = 128, s = 32, b = 2, heads = 4;

/// LLaMA's layer as Megatron-LM has it; with experts in place of the MLP, if any.
Model decoder(std::int64_t depth, std::int64_t experts = 0) {
  DecoderConfig config{.family = "megatron-gpt",
                       .width = h,
                       .depth = depth,
                       .heads = heads,
                       .mlp = f,
                       .key_heads = heads,
                       .head_width = h / heads,
                       .vocabulary = 512,
                       .positions = s};
  config.mlp_form = MlpForm::GatedPacked;
  config.packed_qkv = true;
  config.unpacking = Unpacking::Slices;
  config.experts = {.count = experts, .per_token = 2, .width = f};
  return small_model("small-megatron", config);
}

StepOptions megatron(bool in_eight_bits) {
  StepOptions options{.batch = b, .precision = Precision::Bf16, .framework = "megatron"};
  if (in_eight_bits) options.linears = LinearMath::Fp8;
  options.master_weights = true;
  options.shard = parse_sharding("megatron");
  return options;
}

std::int64_t kept_per_layer(const StepOptions& options) {
  return kept_at_the_loss(decoder(4), options) - kept_at_the_loss(decoder(3), options);
}

// Of GELU the halves are two kernels' operands, and what the first makes is kept for the second.
TEST(FusedSwiglu, KeepsWhatItReadsAlone) {
  const auto kept = [](std::int64_t depth, ActivationForm activation) {
    Model model = decoder(depth);
    std::get<DecoderConfig>(model.config).activation = activation;
    return kept_at_the_loss(model, megatron(false));
  };
  const auto per_layer = [&](ActivationForm activation) {
    return kept(4, activation) - kept(3, activation);
  };
  EXPECT_EQ(per_layer(ActivationForm::Gelu) - per_layer(ActivationForm::Silu), 2 * s * b * f);
}

// Eight bits of what four products read. Attention keeps its own result, too, unless that is copied
// for the second of them, as flash-attn's is.
TEST(EngineLinear, KeepsCodesOfWhatItReads) {
  const auto saved = [](std::int64_t capability) {
    StepOptions wide = megatron(false), narrow = megatron(true);
    wide.capability = narrow.capability = capability;
    return kept_per_layer(narrow) - kept_per_layer(wide);
  };
  EXPECT_EQ(saved(80), s * b * (-h - h - h - f));
  EXPECT_EQ(saved(90), s * b * (-h + h - h - f));
}

// Two bytes per element of a weight stay; tensor-parallel ranks have some of them each.
TEST(EngineLinear, HasCodesOfWeightsBetweenSteps) {
  constexpr std::int64_t per_layer = 3 * h * h + h * h + 2 * f * h + f * h;
  for (const std::int64_t ranks : {1, 2, 4}) {
    StepOptions options = megatron(true);
    options.mesh[Axis::Tensor] = ranks;
    const Schedule schedule = lower(planned(build_rank_trace(decoder(3), options), "vanilla"));
    EXPECT_EQ(resting(schedule, Category::Workspace), 3 * 2 * per_layer / ranks);
  }
}

// In the first of a step's micro-batches; an element is read twice and written twice.
TEST(EngineLinear, CastsWeightsOncePerStep) {
  const Shape x = {s, h}, weight = {f, h}, y = {s, f};
  const OpaqueRow one = engine_product_row(x, weight, y, 2, false, 1);
  const OpaqueRow two = engine_product_row(x, weight, y, 2, false, 2);
  EXPECT_EQ(one.forward.streamed - two.forward.streamed, Bytes{6 * f * h / 2});
  EXPECT_EQ(one.forward.streamed, Bytes{6 * (s * h + f * h)});
  EXPECT_EQ(one.backward.streamed, Bytes{6 * s * f});
  EXPECT_EQ(one.forward.flops, 2 * s * h * f);
  EXPECT_EQ(one.backward.flops, 4 * s * h * f);
}

// Gathered tokens are gathered again, and not kept as codes.
TEST(EngineLinear, KeepsNoCodesOfWhatWasGathered) {
  StepOptions options = megatron(true);
  options.mesh[Axis::Tensor] = 2;
  options.sequence_parallel = true;
  const Trace trace = build_rank_trace(decoder(2), options);
  int products = 0, kept = 0;
  for (const Op& op : trace.ops) {
    if (!is_engine_product(trace, op)) continue;
    ++products;
    const OpaqueRow expected =
        engine_product_row(trace[trace.inputs(op)[0]].shape, trace[trace.inputs(op)[1]].shape,
                           trace[trace.outputs(op)[0]].shape, 2,
                           (opaque_row(trace, op)->saved & input_bit(0)) != 0, 1);
    EXPECT_EQ(*opaque_row(trace, op), expected);
    if (opaque_row(trace, op)->saved & output_bit(1)) ++kept;
  }
  EXPECT_EQ(products, 2 * 4);
  EXPECT_EQ(kept, 2 * 2);
}

TEST(EngineLinear, AmongRanksIsSound) {
  for (const std::int64_t experts : {0, 4})
    for (const char* mesh : {"dp=2", "tp=2,dp=2", "cp=2,tp=2", "pp=2,dp=2"}) {
      StepOptions options = megatron(true);
      options.mesh = parse_mesh(mesh);
      options.sequence_parallel = options.mesh[Axis::Tensor] > 1;
      if (options.mesh[Axis::Pipeline] > 1) options.accumulate = {3};
      if (experts > 0 && options.mesh[Axis::Data] > 1) options.mesh.experts = 2;
      for (const char* strategy : {"vanilla", "checkpoint"})
        expect_sound_ranks(decoder(2, experts), options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Biases are added behind products that ranks share by columns.
TEST(EngineLinear, WithBiasesIsSound) {
  Model model = decoder(2);
  auto& config = std::get<DecoderConfig>(model.config);
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  for (const bool has_sequence : {false, true}) {
    StepOptions options = megatron(true);
    options.mesh[Axis::Tensor] = 2;
    options.sequence_parallel = has_sequence;
    expect_sound_ranks(model, options, "vanilla");
  }
}

TEST(EngineLinear, OfExpertsIsSharedByTheRanksThatHaveThem) {
  StepOptions options = megatron(true);
  options.mesh = parse_mesh("dp=4,ep=2");
  const Trace trace = build_rank_trace(decoder(1, 4), options);
  EXPECT_EQ(experts_in(trace), 2);
  const std::vector<bool> is_of_experts = parameters_of_experts(trace);
  for (const Op& op : trace.ops)
    if (is_product_of_experts(trace, op))
      for (const TensorId weight : trace.inputs(op).subspan(1)) {
        EXPECT_EQ(trace[weight].shape[0], 2);
        EXPECT_TRUE(is_of_experts[index(weight)]);
      }
}

}  // namespace
}  // namespace tidemark::engine_linear_test
