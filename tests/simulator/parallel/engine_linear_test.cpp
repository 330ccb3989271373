// Transformer Engine's products in eight bits, and SwiGLU in one kernel: what is kept per layer,
// what stays between steps, and that ranks of every kind are sound with them.
#include "traces/engine_linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/simulator/parallel/small_megatron.h"
#include "traces/expert_ops.h"

namespace tidemark::engine_linear_test {
namespace {

constexpr std::int64_t h = 64, f = 128, s = 32, b = 2, heads = 4;

Model decoder(std::int64_t depth, std::int64_t experts = 0) {
  return small_megatron(depth, experts);
}

StepOptions megatron(std::optional<LinearMath> linears) {
  StepOptions options{.batch = b, .precision = Precision::Bf16, .framework = "megatron"};
  if (linears) options.linears = CodedLinears{*linears};
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
    return kept_at_the_loss(model, megatron({}));
  };
  const auto per_layer = [&](ActivationForm activation) {
    return kept(4, activation) - kept(3, activation);
  };
  EXPECT_EQ(per_layer(ActivationForm::Gelu) - per_layer(ActivationForm::Silu), 2 * s * b * f);
}

// Eight bits of what four products read. Attention keeps its own result, too, unless that is copied
// for the second of them, as flash-attn's is.
TEST(EngineLinear, KeepsCodesOfWhatItReads) {
  const auto saved = [](std::int64_t capability, LinearMath math = LinearMath::Fp8) {
    StepOptions wide = megatron({}), narrow = megatron(math);
    wide.capability = narrow.capability = capability;
    return kept_per_layer(narrow) - kept_per_layer(wide);
  };
  EXPECT_EQ(saved(80), s * b * (-h - h - h - f));
  EXPECT_EQ(saved(90), s * b * (-h + h - h - f));
  EXPECT_EQ(saved(100), saved(90));
  constexpr std::int64_t read = s * b * (3 * h + f);
  EXPECT_EQ(saved(100, LinearMath::MxFp8) - saved(100), read / 32);
  EXPECT_EQ(saved(100, LinearMath::NvFp4) - saved(100), -read / 2 + read / 16);
}

// Codes of weights stay, with their factors; tensor-parallel ranks have some of them each.
TEST(EngineLinear, HasCodesOfWeightsBetweenSteps) {
  constexpr std::int64_t all = 3 * (3 * h * h + h * h + 2 * f * h + f * h);
  const auto resting_of = [](LinearMath math, std::int64_t ranks, std::int64_t capability = 90) {
    StepOptions options = megatron(math);
    options.mesh[Axis::Tensor] = ranks;
    options.capability = capability;
    return resting(lower(planned(build_rank_trace(decoder(3), options), "vanilla")),
                   Category::Workspace);
  };
  for (const std::int64_t ranks : {1, 2, 4})
    EXPECT_EQ(resting_of(LinearMath::Fp8, ranks), 2 * all / ranks);
  EXPECT_EQ(resting_of(LinearMath::Fp8, 1, 100), all);
  for (const std::int64_t ranks : {1, 2}) {
    EXPECT_EQ(resting_of(LinearMath::MxFp8, ranks, 100), 2 * (all + all / 32) / ranks);
    EXPECT_EQ(resting_of(LinearMath::NvFp4, ranks, 100), 2 * (all / 2 + all / 16) / ranks);
  }
}

// Sides are multiples of the numbers that share a factor, or linears stay as they are.
TEST(EngineLinear, IsOfSidesThatGroupsDivide) {
  const auto products = [](LinearMath math) {
    Model model = decoder(1);
    std::get<DecoderConfig>(model.config).mlp = 3 * 16;
    const Trace trace = build_trace(model, megatron(math));
    return std::ranges::count_if(trace.ops,
                                 [&](const Op& op) { return is_engine_product(trace, op); });
  };
  EXPECT_EQ(products(LinearMath::Fp8), 4);
  EXPECT_EQ(products(LinearMath::NvFp4), 4);
  EXPECT_EQ(products(LinearMath::MxFp8), 3);  // gate and up are 96 wide together
  Model narrow = decoder(1);
  std::get<DecoderConfig>(narrow.config).mlp = 3 * 16;
  EXPECT_THAT(
      [&] { require_used_options(build_trace(narrow, megatron(LinearMath::Fp8Blockwise))); },
      testing::ThrowsMessage<UsageError>(
          testing::HasSubstr("multiples of 128, as fp8-blockwise products need them")));
}

// Columns are coded, too; rows of experts are filled up to as many.
TEST(EngineLinear, TakesRowsThatGroupsDivide) {
  const auto built = [](LinearMath math, std::int64_t tokens, std::int64_t experts = 0) {
    StepOptions options = megatron(math);
    options.batch = 1, options.sequence = tokens;
    return build_trace(decoder(1, experts), options);
  };
  EXPECT_NO_THROW(built(LinearMath::Fp8, 24));
  EXPECT_NO_THROW(built(LinearMath::NvFp4, 16));
  EXPECT_NO_THROW(built(LinearMath::MxFp8, 32));
  EXPECT_THAT([&] { built(LinearMath::MxFp8, 24); },
              testing::ThrowsMessage<UsageError>(
                  "--linears mxfp8: products take rows in multiples of 32, but blocks.0.attn.qkv "
                  "has 24 (another --batch or size makes it one)"));
  EXPECT_THROW(built(LinearMath::Fp8, 12), UsageError);
  EXPECT_THROW(built(LinearMath::NvFp4, 24), UsageError);
}

TEST(EngineLinear, OfExpertsHasSidesThatGroupsDivide) {
  const auto coded = [](LinearMath math) {
    Model model = decoder(1, 4);
    std::get<DecoderConfig>(model.config).experts.width = 48;
    const Trace trace = build_trace(model, megatron(math));
    return std::ranges::count_if(trace.ops, [&](const Op& op) {
      return is_engine_product(trace, op) && is_product_of_experts(trace, op);
    });
  };
  EXPECT_EQ(coded(LinearMath::NvFp4), 2);
  EXPECT_EQ(coded(LinearMath::MxFp8), 1);  // gate and up are 96 wide together
}

TEST(EngineLinear, LeavesBlocksAtTheEndsAsTheyAre) {
  StepOptions options = megatron({});
  const auto blocks = [&](std::string_view linears) {
    options.linears = parse_coded_linears(linears);
    const Trace trace = build_trace(decoder(4), options);
    std::string found;
    for (const Block& block : trace.blocks) {
      int products = 0;
      for (std::size_t i = index(block.begin); i < index(block.end); ++i)
        products += is_engine_product(trace, trace.ops[i]);
      found += std::to_string(products);
    }
    return found;
  };
  EXPECT_EQ(blocks("nvfp4"), "4444");
  EXPECT_EQ(blocks("nvfp4:first=1"), "0444");
  EXPECT_EQ(blocks("fp8:last=2"), "4400");
  EXPECT_EQ(blocks("nvfp4:first=1,last=2"), "0400");
  EXPECT_THAT([&] { blocks("nvfp4:first=1,last=3"); },
              testing::ThrowsMessage<UsageError>(
                  "--linears nvfp4:first=1,last=3: the model has 4 blocks, of which none is left"));
}

TEST(CodedLinears, AreWrittenAsTheyAreRead) {
  for (const char* text :
       {"fp8", "fp8-blockwise", "mxfp8:first=2", "nvfp4:last=14", "nvfp4:first=1,last=14"})
    EXPECT_EQ(to_text(parse_coded_linears(text)), text);
  EXPECT_EQ(to_text(parse_coded_linears("nvfp4:last=0")), "nvfp4");
  for (const char* text : {"nvfp4:last=", "nvfp4:", "nvfp4:14", "nvfp4:middle=1", "nvfp4:first=-1",
                           "nvfp4:first=1,first=3"})
    EXPECT_THROW(parse_coded_linears(text), UsageError) << text;
}

// Reads twice where the largest is looked for first, and writes by rows and by columns.
TEST(EngineLinear, CastsByItsRecipe) {
  const EngineProduct product = {.x = {s, 2 * f}, .weight = {f, 2 * f}, .y = {s, f}, .wide = 2};
  const auto row = [&](LinearMath math, std::int64_t capability = 100) {
    StepOptions step = megatron(math);
    step.capability = capability;
    return engine_product_row(step, product);
  };
  constexpr std::int64_t x = s * 2 * f, w = f * 2 * f, y = s * f;
  EXPECT_EQ(row(LinearMath::Fp8, 90).forward.streamed, Bytes{6 * (x + w)});
  EXPECT_EQ(row(LinearMath::Fp8).forward.streamed, Bytes{5 * (x + w)});
  EXPECT_EQ(row(LinearMath::Fp8).forward.workspace, Bytes{0});
  EXPECT_EQ(row(LinearMath::MxFp8).forward.streamed, Bytes{(2 + 2) * (x + w) + (x + w) / 16});
  EXPECT_EQ(row(LinearMath::MxFp8).forward.workspace, Bytes{x + x / 32});
  EXPECT_EQ(row(LinearMath::Fp8Blockwise), [&] {
    OpaqueRow same = row(LinearMath::MxFp8);
    same.operation = "transformer_engine::linear_fp8-blockwise";
    return same;
  }());
  EXPECT_EQ(row(LinearMath::NvFp4).forward.streamed, Bytes{(4 + 1) * (x + w) + (x + w) / 8});
  EXPECT_EQ(row(LinearMath::NvFp4).backward.workspace, Bytes{y + y / 8});
  EXPECT_EQ(row(LinearMath::NvFp4).math, DType::Float4x2);
  EXPECT_EQ(row(LinearMath::NvFp4).forward.moved, Bytes{(x + w) / 2 + (x + w) / 16 + 2 * y});
  EXPECT_EQ(row(LinearMath::NvFp4).forward.kernels, 3);
  EXPECT_EQ(row(LinearMath::MxFp8).forward.kernels, 2);
}

// In the first of a step's micro-batches; an element is read twice and written twice.
TEST(EngineLinear, CastsWeightsOncePerStep) {
  const EngineProduct product = {.x = {s, h}, .weight = {f, h}, .y = {s, f}, .wide = 2};
  StepOptions step = megatron(LinearMath::Fp8);
  const OpaqueRow one = engine_product_row(step, product);
  step.accumulate = {2};
  const OpaqueRow two = engine_product_row(step, product);
  EXPECT_EQ(one.forward.streamed - two.forward.streamed, Bytes{6 * f * h / 2});
  EXPECT_EQ(one.forward.streamed, Bytes{6 * (s * h + f * h)});
  EXPECT_EQ(one.backward.streamed, Bytes{6 * s * f});
  EXPECT_EQ(one.forward.flops, 2 * s * h * f);
  EXPECT_EQ(one.backward.flops, 4 * s * h * f);
}

// Gathered tokens are gathered again, and not kept as codes.
TEST(EngineLinear, KeepsNoCodesOfWhatWasGathered) {
  StepOptions options = megatron(LinearMath::Fp8);
  options.mesh[Axis::Tensor] = 2;
  options.sequence_parallel = true;
  const Trace trace = build_rank_trace(decoder(2), options);
  int products = 0, kept = 0;
  for (const Op& op : trace.ops) {
    if (!is_engine_product(trace, op)) continue;
    ++products;
    const OpaqueRow expected = engine_product_row(
        options, {.x = trace[trace.inputs(op)[0]].shape,
                  .weight = trace[trace.inputs(op)[1]].shape,
                  .y = trace[trace.outputs(op)[0]].shape,
                  .wide = 2,
                  .keeps_input = (opaque_row(trace, op)->saved & input_bit(0)) != 0});
    EXPECT_EQ(*opaque_row(trace, op), expected);
    if (opaque_row(trace, op)->saved & output_bit(1)) ++kept;
  }
  EXPECT_EQ(products, 2 * 4);
  EXPECT_EQ(kept, 2 * 2);
}

TEST(EngineLinear, AmongRanksIsSound) {
  for (const std::int64_t experts : {0, 4})
    for (const char* mesh : {"dp=2", "tp=2,dp=2", "cp=2,tp=2", "pp=2,dp=2"}) {
      StepOptions options = megatron(experts > 0 ? LinearMath::NvFp4 : LinearMath::Fp8);
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
    StepOptions options = megatron(LinearMath::Fp8);
    options.mesh[Axis::Tensor] = 2;
    options.sequence_parallel = has_sequence;
    expect_sound_ranks(model, options, "vanilla");
  }
}

TEST(EngineLinear, OfExpertsIsSharedByTheRanksThatHaveThem) {
  StepOptions options = megatron(LinearMath::Fp8);
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
