// Steps of Megatron-LM's functional tests that predict further tokens (d98e8a64dd, 2026-08-22):
// moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed and …_mtp_resume_torch_dist_fp8 on H100,
// nemotron/nemotron3_5_lightning_no_load_optim_… on GB200. What the last rank's allocator had after
// the last step, and at most. Nothing was taken from them; which expert got how many is not stated.
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "simulator/parallel/cluster.h"
#include "traces/models/config_reader.h"

namespace tidemark::published_further_tokens_test {
namespace {

// GPT-2's words are filled up to 3232 for each tensor-parallel rank.
constexpr auto gpt = R"({"model_type": "megatron-gpt", "num_layers": 16, "hidden_size": 1024,
    "num_attention_heads": 32, "ffn_hidden_size": 4096, "kv_channels": 128, "vocab_size": 51712,
    "max_position_embeddings": 4096, "position_embedding_type": "rope", "swiglu": true,
    "normalization": "RMSNorm", "add_bias_linear": false, "attention_dropout": 0,
    "hidden_dropout": 0, "untie_embeddings_and_output_weights": true, "qk_layernorm": true,
    "multi_latent_attention": true, "apply_rope_fusion": false, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
    "num_experts": 32, "moe_router_topk": 4, "moe_ffn_hidden_size": 1024,
    "moe_shared_expert_intermediate_size": 1024, "moe_router_dtype": "fp32",
    "moe_layer_freq": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "mtp_num_layers": 1})";

constexpr auto hybrid = R"({"model_type": "megatron-hybrid", "hidden_size": 768,
    "hybrid_layer_pattern": "MEMEM*EMEMEM*E/*E/*E", "num_attention_heads": 8,
    "num_query_groups": 2, "kv_channels": 64, "ffn_hidden_size": 512, "vocab_size": 50304,
    "max_position_embeddings": 2048, "normalization": "RMSNorm", "add_bias_linear": false,
    "attention_dropout": 0, "hidden_dropout": 0, "squared_relu": true,
    "untie_embeddings_and_output_weights": true, "mamba_num_heads": 16, "mamba_head_dim": 64,
    "mamba_state_dim": 128, "mamba_num_groups": 8, "num_experts": 32, "moe_router_topk": 4,
    "moe_ffn_hidden_size": 512, "moe_shared_expert_intermediate_size": 1024,
    "moe_router_dtype": "fp32", "mtp_use_repeated_layer": true})";

Scenario scenario_of(const char* config, const char* cluster) {
  Scenario scenario{.model = {},
                    .step = {},
                    .device = device_of(find_cluster(cluster)),
                    .strategies = {parse_strategy("vanilla")}};
  scenario.model.config = read_model_config(config, "config.json").config;
  StepOptions& step = scenario.step;
  step.precision = Precision::Bf16;
  step.master_weights = true;
  step.framework = "megatron";
  step.loss = parse_token_loss("native");
  return scenario;
}

/// Two stages of four chunks each.
Report of_gpt(const std::optional<CodedLinears>& linears) {
  Scenario scenario = scenario_of(gpt, "dgx-h100");
  StepOptions& step = scenario.step;
  step.batch = 4;
  step.sequence = 4096;
  step.attention = Attention::Math;
  step.linears = linears;
  step.mesh = parse_mesh("pp=2,dp=2,tp=2,ep=4,etp=1");
  step.sequence_parallel = true;
  step.accumulate = {4};
  step.shard = parse_sharding("megatron:overlap");
  step.schedule = parse_schedule("interleaved:v=4");
  step.rank = RankClass{1};
  return compare(scenario).rows.at(0);
}

Report of_hybrid() {
  Scenario scenario = scenario_of(hybrid, "gb200-nvl72");
  StepOptions& step = scenario.step;
  step.batch = 2;
  step.sequence = 2048;
  step.mesh = parse_mesh("dp=4,ep=4");
  step.accumulate = {4};
  step.shard = parse_sharding("megatron:overlap,narrow-gradients");
  return compare(scenario).rows.at(0);
}

/// `error` is a share of what was published.
void expect_near(Bytes found, double published, double error) {
  EXPECT_NEAR(static_cast<double>(found.count), published, error * published);
}

TEST(PublishedFurtherTokens, AreFound) {
  const Report in_bf16 = of_gpt({}), in_fp8 = of_gpt(CodedLinears{LinearMath::Fp8});
  expect_near(in_bf16.allocated_at_rest, 6'632'031'744, 0.005);
  expect_near(in_bf16.allocated_peak, 60'111'630'336, 0.06);
  expect_near(in_fp8.allocated_at_rest, 7'321'333'248, 0.005);
  expect_near(in_fp8.allocated_peak, 57'578'217'472, 0.035);
  const Report repeated = of_hybrid();
  expect_near(repeated.allocated_at_rest, 2'150'481'408, 0.005);
  expect_near(repeated.allocated_peak, 6'953'188'864, 0.015);
}

}  // namespace
}  // namespace tidemark::published_further_tokens_test
