// Latent attention by the names of Megatron-LM's command line, alone and among tensor-parallel
// ranks: what makes tokens narrow is whole on each, what widens them is cut by heads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/parallel/ranks.h"
#include "traces/latent_ops.h"
#include "traces/models/config_reader.h"

namespace tidemark::latent_ranks_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t width = 64, heads = 4, query_rank = 24, key_rank = 12, plain = 8, turns = 4,
                       values = 6, tokens = 16, batch = 2;

Model latent_gpt(std::string_view more = "") {
  return small_model("small-latent", read_model_config(fmt::format(R"({{
    "model_type": "megatron-gpt", "num_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "vocab_size": 128, "max_position_embeddings": 16, "multi_latent_attention": true,
    "q_lora_rank": 24, "kv_lora_rank": 12, "qk_head_dim": 8, "qk_pos_emb_head_dim": 4,
    "v_head_dim": 6{}}})",
                                                                   more),
                                                       "config.json")
                                         .config);
}

StepOptions of_tensor_ranks(std::int64_t ranks, bool is_cut = true) {
  StepOptions options = of_bf16(1, "megatron");
  options.framework = "megatron";
  options.sequence = tokens;
  options.mesh[Axis::Tensor] = ranks;
  options.sequence_parallel = is_cut && ranks > 1;
  return options;
}

Shape shape_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
  return found == trace.tensors.end() ? Shape() : found->shape;
}

bool has(const Trace& trace, std::string_view operation) {
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    const OpaqueRow* const row = opaque_row(trace, op);
    return row && row->operation == operation;
  });
}

TEST(LatentRanks, EachMakesItsOwnTokensNarrowAndSomeHeads) {
  const Trace trace = build_rank_trace(latent_gpt(), of_tensor_ranks(2));
  const auto shape = [&](std::string_view name) {
    return shape_of(trace, "blocks.0.attn." + std::string(name));
  };
  EXPECT_EQ(shape("q_a.weight"), Shape({query_rank, width}));
  EXPECT_EQ(shape("q_a"), Shape({batch, tokens / 2, query_rank}));
  EXPECT_EQ(shape("q_b.weight"), Shape({heads / 2 * (plain + turns), query_rank}));
  EXPECT_EQ(shape("q_a.gather"), Shape({batch, tokens, query_rank}));
  EXPECT_EQ(shape("kv_a.weight"), Shape({key_rank + turns, width}));
  EXPECT_EQ(shape("kv_a.parts.narrow"), Shape({batch, tokens / 2, key_rank}));
  EXPECT_EQ(shape("kv_a.parts.narrow.gather"), Shape({batch, tokens, key_rank}));
  EXPECT_EQ(shape("kv_a.parts.turns"), Shape({batch, tokens / 2, turns}));
  EXPECT_EQ(shape("kv_a.parts.turns.gather"), Shape({batch, tokens, turns}));
  EXPECT_EQ(shape("kv_b.weight"), Shape({heads / 2 * (plain + values), key_rank}));
  EXPECT_EQ(shape("k.join"), Shape({batch, heads / 2, tokens, plain + turns}));
  EXPECT_EQ(shape("o.weight"), Shape({width, heads / 2 * values}));
}

// Without --sp nothing of it is gathered: gradients of what all heads read are summed.
TEST(LatentRanks, WithWholeSequencesAddGradientsOfWhatAllHeadsRead) {
  const Trace trace = build_rank_trace(latent_gpt(), of_tensor_ranks(2, false));
  EXPECT_EQ(shape_of(trace, "blocks.0.attn.kv_a.parts.turns.replicate"),
            Shape({batch, tokens, turns}));
  EXPECT_EQ(shape_of(trace, "blocks.0.attn.q_a.weight"), Shape({query_rank, width}));
}

// Kernels turn heads where positions are rotations; words with learned positions leave that to
// code (validate_args() of training/arguments.py). qk_layernorm norms what is narrow.
TEST(LatentRanks, AreTurnedByKernelsUnlessWordsHaveLearnedPositions) {
  const auto trace = [](std::string_view more) {
    return build_rank_trace(latent_gpt(more), of_tensor_ranks(1));
  };
  EXPECT_FALSE(has(trace(""), turned_queries_operation));
  EXPECT_NE(shape_of(trace(""), "blocks.0.attn.q_rope.join"), Shape());
  constexpr auto rotated = R"(, "position_embedding_type": "rope")";
  EXPECT_TRUE(has(trace(rotated), turned_queries_operation));
  EXPECT_TRUE(has(trace(rotated), split_keys_operation));
  EXPECT_EQ(shape_of(trace(rotated), "blocks.1.attn.k_rope.v"),
            Shape({batch, heads, tokens, values}));
  EXPECT_FALSE(has(trace(R"(, "position_embedding_type": "rope", "apply_rope_fusion": false)"),
                   split_keys_operation));
  EXPECT_EQ(shape_of(trace(""), "blocks.0.attn.q_a_norm.weight"), Shape());
  EXPECT_EQ(shape_of(trace(R"(, "qk_layernorm": true)"), "blocks.0.attn.q_a_norm.bias"),
            Shape({query_rank}));
  EXPECT_EQ(shape_of(trace(R"(, "qk_layernorm": true, "normalization": "RMSNorm")"),
                     "blocks.0.attn.kv_a_norm.weight"),
            Shape({key_rank}));
}

// Each layer has tables of its own: angles of the tokens at hand, and waves of 4096.
TEST(LatentRanks, KeepTablesInEachLayer) {
  const Trace trace = build_rank_trace(latent_gpt(), of_tensor_ranks(1));
  for (const char* layer : {"blocks.0.attn.", "blocks.1.attn."}) {
    EXPECT_EQ(shape_of(trace, layer + std::string("rope.angles")), Shape({tokens, turns}));
    EXPECT_EQ(shape_of(trace, layer + std::string("rope.cos_cached")), Shape({4096, turns}));
  }
  const Trace fused =
      build_rank_trace(latent_gpt(R"(, "position_embedding_type": "rope")"), of_tensor_ranks(1));
  EXPECT_EQ(shape_of(fused, "blocks.0.attn.rope.sin_cached"), Shape({tokens, turns}));
}

// … and a stage those of its own.
TEST(LatentRanks, KeepTablesOnTheStageOfTheirLayer) {
  StepOptions options = of_tensor_ranks(1);
  options.mesh[Axis::Pipeline] = 2;
  options.accumulate = {2};
  for (const std::int64_t stage : {0, 1}) {
    options.rank = RankClass{stage};
    const Trace trace = build_rank_trace(
        latent_gpt(R"(, "mtp_num_layers": 2, "mtp_use_repeated_layer": true)"), options);
    const auto tables = [&](std::string_view layer) {
      return std::ranges::count(trace.tensors, fmt::format("{}.attn.rope.angles", layer),
                                &Tensor::name);
    };
    EXPECT_EQ(tables("blocks.0"), stage == 0 ? 1 : 0);
    EXPECT_EQ(tables("blocks.1"), stage == 0 ? 0 : 1);
    EXPECT_EQ(tables("mtp.blocks.0"), stage == 0 ? 0 : 1);
    EXPECT_EQ(tables("ahead1.mtp.blocks.0") + tables("ahead2.mtp.blocks.0"), 0);
  }
}

TEST(LatentRanks, EveryStrategyIsSound) {
  for (const char* more : {"", R"(, "position_embedding_type": "rope")",
                           R"(, "qk_layernorm": true, "normalization": "RMSNorm")"})
    for (const std::int64_t ranks : {1, 2, 4})
      for (const bool is_cut : {false, true})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
          expect_sound_ranks(latent_gpt(more), of_tensor_ranks(ranks, is_cut), strategy);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(LatentRanks, EveryOtherAxisIsSound) {
  for (const char* more : {"", R"(, "position_embedding_type": "rope")"})
    for (const char* mesh : {"pp=2,tp=2", "dp=2,cp=2", "cp=2,tp=2"}) {
      StepOptions options = of_tensor_ranks(2);
      options.mesh = parse_mesh(mesh);
      options.sequence_parallel = options.mesh[Axis::Tensor] > 1;
      options.accumulate = {2};
      options.attention = Attention::Flash;
      expect_sound_ranks(latent_gpt(more), options, "vanilla");
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(LatentRanks, RefuseKeysOfFewerHeads) {
  try {
    latent_gpt(R"(, "num_query_groups": 2)");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("keys come out of what all heads share; leave it out"));
  }
}

}  // namespace
}  // namespace tidemark::latent_ranks_test
