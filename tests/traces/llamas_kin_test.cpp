// LLaMA's later kin: what their files say and leave out, and what their blocks do otherwise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/decoder_traces.h"
#include "traces/linear_names.h"

namespace tidemark::llamas_kin_test {
namespace {

using namespace decoder_traces;
using testing::HasSubstr;

DecoderConfig read(std::string_view json) { return config_of(json); }

Trace composed(std::string_view json) { return trace_of(json, {.attention = Attention::Math}); }

std::string small(std::string_view own) {
  return fmt::format(R"({{{}, "hidden_size": 16, "num_hidden_layers": 4, "vocab_size": 31,
                          "num_attention_heads": 2, "num_key_value_heads": 1,
                          "intermediate_size": 24}})",
                     own);
}

TEST(LlamasKin, HasTheDefaultsOfItsClasses) {
  const DecoderConfig granite = read(R"({"model_type": "granite"})");
  EXPECT_EQ(granite.score_factor, 1);  // not 1/√d
  EXPECT_EQ(granite.embedding_factor, 1);
  EXPECT_EQ(granite.branch_factor, 1);
  EXPECT_EQ(granite.logit_factor, 1);
  EXPECT_FALSE(granite.tied_head);
  const DecoderConfig smollm = read(R"({"model_type": "smollm3"})");
  EXPECT_EQ(smollm.still_every, 4);
  EXPECT_EQ(smollm.rotary.theta, 2e6);
  EXPECT_EQ(smollm.key_heads, 4);
  EXPECT_TRUE(smollm.tied_head);
  const DecoderConfig seed = read(R"({"model_type": "seed_oss"})");
  EXPECT_EQ(seed.head_width, 128);  // not 4096 / 80
  EXPECT_TRUE(seed.qkv_bias && seed.drops_inside);
  EXPECT_FALSE(seed.out_bias || seed.mlp_bias);
  EXPECT_EQ(seed.residual_dropout, 0.1);
  EXPECT_EQ(seed.attention_dropout, 0.1);
  const DecoderConfig olmo = read(R"({"model_type": "olmo3", "rope_theta": 500000})");
  EXPECT_EQ(olmo.sliding_window, 4096);
  EXPECT_EQ(olmo.global_every, 4);
  EXPECT_EQ(olmo.local_rotary->theta, 500000);
  EXPECT_EQ(olmo.head_norm, HeadNorm::WholeWidth);
  const DecoderConfig exaone = read(R"({"model_type": "exaone4"})");
  EXPECT_EQ(exaone.block, BlockForm::BranchNorm);
  EXPECT_EQ(exaone.global_every, 4);
  EXPECT_EQ(exaone.still_every, 4);
  EXPECT_EQ(exaone.mlp, 16384);
  const DecoderConfig hunyuan = read(R"({"model_type": "hunyuan_v1_dense"})");
  EXPECT_TRUE(hunyuan.norms_turned);
  EXPECT_EQ(hunyuan.vocabulary, 290943);
}

// Two linears, and the square of what ReLU leaves: AFM-4.5B.
TEST(LlamasKin, ArceesMlpHasNoGate) {
  const DecoderConfig arcee = read(R"({"model_type": "arcee"})");
  EXPECT_EQ(arcee.mlp_form, MlpForm::Plain);
  EXPECT_EQ(arcee.activation, ActivationForm::SquaredRelu);
  EXPECT_EQ(arcee.key_heads, 32);
  EXPECT_FALSE(arcee.tied_head || arcee.qkv_bias || arcee.mlp_bias);
  const Trace trace = composed(R"({"model_type": "arcee", "num_hidden_layers": 36,
                                   "num_attention_heads": 20, "num_key_value_heads": 4,
                                   "head_dim": 128, "vocab_size": 128005})");
  EXPECT_EQ(parameters_in(trace), 4'619'189'760);
  EXPECT_EQ(linears_named("up_proj", "arcee"), (std::vector<std::string_view>{"fc1"}));
  EXPECT_EQ(linears_named("down_proj", "arcee"), (std::vector<std::string_view>{"fc2"}));
}

TEST(LlamasKin, GlmHasDeepSeeksExpertsBesideLlamasAttention) {
  const DecoderConfig glm = read(R"({"model_type": "glm4_moe", "head_dim": 128,
                                     "attention_bias": true, "use_qk_norm": true})");
  EXPECT_EQ(glm.rotary_width, 64);  // half of a head
  EXPECT_EQ(glm.key_heads, 8);
  EXPECT_TRUE(glm.qkv_bias);
  EXPECT_FALSE(glm.out_bias);
  EXPECT_EQ(glm.head_norm, HeadNorm::PerHead);
  EXPECT_EQ(glm.latent.key_rank, 0);
  EXPECT_EQ(glm.experts.count, 128);
  EXPECT_EQ(glm.experts.per_token, 8);
  EXPECT_EQ(glm.experts.width, 1408);
  EXPECT_EQ(glm.experts.shared_width, 1408);
  EXPECT_EQ(glm.experts.groups, 1);
  EXPECT_EQ(glm.experts.router, RouterForm::SigmoidOfGroups);
  EXPECT_THAT(glm.dense_blocks, testing::ElementsAre(0));
}

TEST(LlamasKin, DividesLogitsByTheirScaling) {
  const DecoderConfig granite =
      read(R"({"model_type": "granite", "embedding_multiplier": 12, "attention_multiplier": 0.0156,
               "residual_multiplier": 0.22, "logits_scaling": 8, "mlp_bias": true})");
  EXPECT_EQ(granite.embedding_factor, 12);
  EXPECT_EQ(granite.score_factor, 0.0156);
  EXPECT_EQ(granite.branch_factor, 0.22);
  EXPECT_EQ(granite.logit_factor, 0.125);
  EXPECT_TRUE(granite.mlp_bias);
}

TEST(LlamasKin, ScalesOnlyWhatHasAFactor) {
  const auto scales = [](std::string_view own) {
    auto names = names_of(composed(small(own)), OpKind::Scale);
    std::erase_if(names,
                  [](const std::string& name) { return name.starts_with("attention_mask"); });
    return names;
  };
  EXPECT_THAT(scales(R"("model_type": "granite")"), testing::Each(HasSubstr(".attn.scale")));
  const auto scaled = scales(R"("model_type": "granite", "embedding_multiplier": 2,
                                "residual_multiplier": 0.5, "logits_scaling": 4)");
  EXPECT_EQ(std::ranges::count(scaled, "embed.scale"), 1);
  EXPECT_EQ(std::ranges::count(scaled, "logits.scale"), 1);
  EXPECT_EQ(std::ranges::count(scaled, "blocks.3.add1.scale"), 1);
  EXPECT_EQ(std::ranges::count(scaled, "blocks.3.add2.scale"), 1);
}

TEST(LlamasKin, TurnsNoHeadInEveryNthBlock) {
  const auto turns = [](std::string_view own) {
    return names_of(composed(small(own)), OpKind::Rope);
  };
  EXPECT_THAT(
      turns(R"("model_type": "smollm3", "no_rope_layer_interval": 3)"),
      testing::ElementsAre("blocks.0.attn.q_rope", "blocks.0.attn.k_rope", "blocks.1.attn.q_rope",
                           "blocks.1.attn.k_rope", "blocks.3.attn.q_rope", "blocks.3.attn.k_rope"));
  EXPECT_EQ(turns(R"("model_type": "smollm3", "no_rope_layers": [1, 0, 1, 0])").size(), 4u);
  EXPECT_EQ(turns(R"("model_type": "smollm3", "no_rope_layers": [1, 1, 1, 1])").size(), 8u);
  // Where there is no window all heads turn; else those that see all do not.
  EXPECT_EQ(turns(R"("model_type": "exaone4")").size(), 6u);
  EXPECT_EQ(turns(R"("model_type": "exaone4", "sliding_window": null)").size(), 8u);
  EXPECT_EQ(turns(R"("model_type": "exaone4", "sliding_window_pattern": "LG", "layer_types":
                     ["sliding_attention", "full_attention", "sliding_attention",
                      "full_attention"])")
                .size(),
            4u);
}

// Files of the hub have these keys, without windows.
TEST(LlamasKin, ReadsWhatIsNotInForce) {
  const auto notes_of = [](const std::string& json) {
    return read_model_config(json, "config.json").notes;
  };
  EXPECT_THAT(notes_of(small(R"("model_type": "smollm3", "use_sliding_window": false,
                                "sliding_window": 512, "layer_types": null)")),
              testing::IsEmpty());
  EXPECT_THAT(notes_of(small(R"("model_type": "exaone4", "sliding_window": null,
                                "sliding_window_pattern": null, "layer_types":
                                ["full_attention", "full_attention", "full_attention",
                                 "full_attention"])")),
              testing::IsEmpty());
}

TEST(LlamasKin, RefusesOtherOrders) {
  EXPECT_THAT(
      error_of(small(R"("model_type": "smollm3", "no_rope_layers": [1, 0, 0, 1])")),
      HasSubstr("/no_rope_layers: a layer without rotation in every 2-th layer is modelled, "
                "other orders are not; layer 2 differs"));
  EXPECT_THAT(error_of(small(R"("model_type": "smollm3", "no_rope_layers": [1, 0])")),
              HasSubstr("/no_rope_layers: 2 numbers for 4 layers"));
  EXPECT_THAT(error_of(small(R"("model_type": "smollm3", "use_sliding_window": true)")),
              HasSubstr("/use_sliding_window"));
}

// Norms behind the rotation read what has turned.
TEST(LlamasKin, HunyuanNormsHeadsThatHaveTurned) {
  const Trace trace = composed(small(R"("model_type": "hunyuan_v1_dense")"));
  const auto place = [&](std::string_view name) {
    return std::ranges::find(trace.ops, name, &Op::name) - trace.ops.begin();
  };
  EXPECT_LT(place("blocks.0.attn.k_rope"), place("blocks.0.attn.q_norm"));
  EXPECT_LT(place("blocks.0.attn.k_norm"), place("blocks.0.attn.scores"));
}

}  // namespace
}  // namespace tidemark::llamas_kin_test
