// Hybrids of state-space layers among ranks: heads and groups are shared as Megatron-LM shares
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/small_hybrid.h"
#include "tests/support/all_strategies.h"
#include "tests/support/brief_model.h"
#include "traces/presets.h"

namespace tidemark::hybrid_ranks_test {
namespace {

using namespace small_hybrid;

TEST(HybridRanks, OnRanksWithEveryStrategyIsSound) {
  for (const char* strategy : all_strategies)
    for (const std::int64_t experts : {1, 2}) {
      StepOptions options = megatron(2);
      options.mesh[Axis::Data] = 2;
      options.mesh.experts = experts;
      options.shard = parse_sharding("megatron");
      expect_sound_ranks(hybrid("ME*-", R"(, "moe_latent_size": 16)"), options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(HybridRanks, OnStagesIsSound) {
  StepOptions options = megatron(2);
  options.mesh[Axis::Pipeline] = 2;
  options.accumulate = {2};
  options.shard = parse_sharding("megatron");
  expect_sound_ranks(hybrid("ME*-"), options, "vanilla");
}

// The smallest sizes of which all products multiply in eight bits; each rank has whole latent ones.
TEST(HybridRanks, InEightBitsAreSound) {
  Model model = brief(find_model("nemotron-3-nano"));
  auto& config = std::get<DecoderConfig>(model.config);
  config.experts.count = 8, config.experts.latent = 1344;
  StepOptions options = megatron(2);
  options.sequence = 64;
  options.linears = {LinearMath::Fp8};
  options.mesh[Axis::Data] = 2;
  options.mesh.experts = 2;
  options.shard = parse_sharding("megatron");
  const Trace trace = build_rank_trace(model, options);
  const auto latent = std::ranges::find(trace.tensors, "blocks.1.mlp.latent_in", &Tensor::name);
  ASSERT_NE(latent, trace.tensors.end());
  EXPECT_EQ(latent->shape, Shape({32, 1344}));
  const auto codes =
      std::ranges::find(trace.tensors, "blocks.1.mlp.latent_in.codes", &Tensor::name);
  ASSERT_NE(codes, trace.tensors.end());
  EXPECT_EQ(codes->shape, Shape({32, 2688}));
  for (const char* strategy : {"vanilla", "checkpoint", "offload", "mesa"})
    expect_sound_ranks(model, options, strategy);
}

// eh_proj has some columns of each rank, whose results are gathered; each head reads whole tokens
// and makes some words' logits, and each table looks some words up.
TEST(HybridRanks, PredictFurtherTokensTogether) {
  const Model model = hybrid("M-", R"(, "num_nextn_predict_layers": 2)");
  for (const bool parts : {false, true}) {
    StepOptions options = megatron(2);
    options.sequence_parallel = parts;
    const Model dense =
        parts ? model
              : hybrid("M-",
                       R"(, "num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "*")");
    const Trace trace = build_rank_trace(dense, options);
    const auto shape = [&](std::string_view name) {
      const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
      return found == trace.tensors.end() ? Shape() : found->shape;
    };
    const std::int64_t own = parts ? tokens / 2 : tokens;
    EXPECT_EQ(shape("mtp.eh_proj.weight"), Shape({width / 2, 2 * width}));
    for (const char* ahead : {"ahead1", "ahead2"}) {
      const std::string name = std::string(ahead) + ".mtp.";
      EXPECT_EQ(shape(name + "join"), Shape({1, own, 2 * width}));
      EXPECT_EQ(shape(name + "eh_proj"), Shape({1, tokens, width / 2}));
      EXPECT_EQ(shape(name + "eh_proj.gather"), Shape({1, tokens, width}));
      EXPECT_EQ(shape(name + "enorm"), Shape({1, own, width}));
      EXPECT_EQ(shape(std::string(ahead) + ".lm_head"), Shape({1, tokens, 128}));
    }
    EXPECT_EQ(shape("ahead1.mtp.eh_proj.scatter"), parts ? Shape({1, own, width}) : Shape());
    EXPECT_EQ(shape("lm_head.weight"), Shape({128, width}));
    EXPECT_EQ(shape("embed.weight"), Shape({128, width}));
    EXPECT_EQ(std::ranges::count(trace.ops, OpKind::VocabularyLoss, &Op::kind), 3);
    for (const char* strategy : all_strategies) {
      options.shard = parse_sharding("megatron");
      expect_sound_ranks(dense, options, strategy);
    }
  }
}

// Heads and groups are shared, the latent products are not: each rank multiplies its own tokens.
TEST(HybridRanks, SharesHeadsAndGroupsAmongTensorRanks) {
  const Model model = hybrid("ME", R"(, "moe_latent_size": 16)");
  const Trace trace = build_rank_trace(model, megatron(2));
  const auto shape = [&](std::string_view name) {
    return std::ranges::find(trace.tensors, name, &Tensor::name)->shape;
  };
  EXPECT_EQ(shape("blocks.0.mixer.in_proj.weight"), Shape({packed / 2, width}));
  EXPECT_EQ(shape("blocks.0.mixer.conv1d.weight"), Shape({channels / 2, 1, 4}));
  EXPECT_EQ(shape("blocks.0.mixer.A_log"), Shape({heads / 2}));
  EXPECT_EQ(shape("blocks.0.mixer.D"), Shape({heads / 2}));
  EXPECT_EQ(shape("blocks.0.mixer.norm.weight"), Shape({inner / 2}));
  EXPECT_EQ(shape("blocks.0.mixer.out_proj.weight"), Shape({width, inner / 2}));
  EXPECT_EQ(shape("blocks.0.mixer.scan.states"), Shape({1, heads / 2, head_width, state}));
  EXPECT_EQ(shape("blocks.1.mlp.latent_in.weight"), Shape({16, width}));
  EXPECT_EQ(shape("blocks.1.mlp.latent_in"), Shape({tokens / 2, 16}));
  EXPECT_EQ(shape("blocks.1.mlp.latent_out"), Shape({tokens / 2, width}));
}

TEST(HybridRanks, RefuseInOneLineWhatIsNotKnown) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal(hybrid("M*"), megatron(4)), HasSubstr("which 4 ranks cannot share"));
  StepOptions context = megatron();
  context.mesh[Axis::Context] = 2;
  EXPECT_THAT(refusal(hybrid("M*"), context),
              HasSubstr("'blocks.0.mixer.scan' scans all tokens in turn"));
  StepOptions ranks{.precision = Precision::Bf16};
  ranks.mesh[Axis::Tensor] = 2;
  EXPECT_THAT(refusal(hybrid("M*"), ranks),
              HasSubstr("multiplies inside of its scan (take --framework megatron)"));
}

}  // namespace
}  // namespace tidemark::hybrid_ranks_test
