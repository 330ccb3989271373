// nemotron_h's config.json and Megatron-LM's options of hybrids: patterns and lists of blocks,
// defaults, and one clear line for each mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "traces/models/config_reader.h"

namespace tidemark::nemotron_config_test {
namespace {

using testing::ElementsAre;

DecoderConfig read(const std::string& members) {
  const std::string json = R"({"model_type": "nemotron_h", )" + members + "}";
  return std::get<DecoderConfig>(read_model_config(json, "c.json").config);
}

Model megatron(const std::string& members) {
  return read_model_config(R"({"model_type": "megatron-hybrid", )" + members + "}", "c.json");
}

/// Of either reader.
template <typename Read>
std::string error_of(const Read& reader, const std::string& members) {
  try {
    reader(members);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NemotronConfig, ReadsLettersAndNamesOfBlocks) {
  const auto all = ElementsAre(Mixer::StateSpace, Mixer::Attention, Mixer::Mlp, Mixer::Experts);
  EXPECT_THAT(read(R"("hybrid_override_pattern": "M*-E")").mixers, all);
  EXPECT_THAT(read(R"("layers_block_type": ["mamba", "attention", "mlp", "moe"])").mixers, all);
  EXPECT_THAT(
      read(R"("layers_block_type": ["linear_attention", "full_attention", "mlp", "moe"])").mixers,
      all);
}

TEST(NemotronConfig, HasTheDefaultsOfItsClass) {
  const DecoderConfig config = read(R"("hybrid_override_pattern": "ME")");
  EXPECT_EQ(config.depth, 2);
  EXPECT_EQ(config.width, 4096);
  EXPECT_EQ(config.key_heads, 8);
  EXPECT_EQ(config.head_width, 128);
  EXPECT_EQ(config.mlp, 21504);
  EXPECT_EQ(config.activation, ActivationForm::SquaredRelu);
  EXPECT_EQ(config.state_space, (StateSpaceConfig{.heads = 128}));
  EXPECT_EQ(config.experts.count, 8);
  EXPECT_EQ(config.experts.width, 7688);
  EXPECT_EQ(config.experts.latent, 0);
  EXPECT_FALSE(config.has_positions);
  EXPECT_EQ(read(R"("hybrid_override_pattern": "M*-")").experts, ExpertsConfig{});
}

// Nemotron-H's first files have another name for it.
TEST(NemotronConfig, ReadsTheOlderNameOfAHeadsWidth) {
  EXPECT_EQ(read(R"("hybrid_override_pattern": "*", "attention_head_dim": 96)").head_width, 96);
}

struct Mistake {
  const char* members;
  const char* error;
};

TEST(NemotronConfig, SaysWhatIsWrongAndWhatToDo) {
  for (const Mistake& of :
       {Mistake{R"("hidden_size": 64)",
                "c.json: need \"hybrid_override_pattern\" or \"layers_block_type\", which say what "
                "each block is"},
        Mistake{
            R"("hybrid_override_pattern": "MX")",
            "c.json: /hybrid_override_pattern: 'X' is no block that is modelled (known: M state "
            "space, * attention, - MLP, E experts)"},
        Mistake{R"("hybrid_override_pattern": "")",
                "c.json: /hybrid_override_pattern: 0 blocks; need 1 to 4096"},
        Mistake{R"("layers_block_type": ["mamba", "conv"])",
                "c.json: /layers_block_type/1: 'conv' is no block that is modelled (known: mamba, "
                "attention, mlp, moe)"},
        Mistake{R"("hybrid_override_pattern": "M*", "num_hidden_layers": 3)",
                "c.json: /num_hidden_layers: 3 layers, but hybrid_override_pattern names 2; use as "
                "many"},
        Mistake{R"("hybrid_override_pattern": "M", "n_groups": 3)",
                "c.json: /n_groups: n_groups = 3 does not divide mamba_num_heads = 128; use a "
                "divisor of it"},
        Mistake{R"("hybrid_override_pattern": "M", "conv_kernel": 1)",
                "c.json: /conv_kernel: need 2 to 4 tokens"},
        Mistake{R"("hybrid_override_pattern": "M", "use_conv_bias": false)",
                "c.json: /use_conv_bias: convolutions without a bias are not modelled; use true"},
        Mistake{R"("hybrid_override_pattern": "M", "use_mamba_kernels": false)",
                "c.json: /use_mamba_kernels: scans without mamba_ssm's kernels are not modelled; "
                "use true"},
        Mistake{R"("hybrid_override_pattern": "M", "mamba_hidden_act": "gelu")",
                "c.json: /mamba_hidden_act: 'gelu' is not modelled (known: silu, swish)"},
        Mistake{R"("hybrid_override_pattern": "E", "num_experts_per_tok": 9)",
                "c.json: /num_experts_per_tok: 9 of 8 experts; use 8 or less"},
        Mistake{R"("hybrid_override_pattern": "E", "n_shared_experts": 2)",
                "c.json: /n_shared_experts: one shared expert is modelled, of any width; use 1"},
        Mistake{R"("hybrid_override_pattern": "E", "mlp_bias": true)",
                "c.json: /mlp_bias: biases of experts are not modelled; use false"},
        Mistake{R"("hybrid_override_pattern": "M", "hidden_dropout": 0.1)",
                "c.json: /hidden_dropout: dropout behind branches is not modelled; use 0"}})
    EXPECT_EQ(error_of(read, of.members), of.error);
}

// model_config.yaml of Megatron-LM's test of Nemotron 3.5 Lightning, beside the hub's files' names.
TEST(MegatronHybrid, IsTheNetworkThatTheHubsFileSays) {
  const Model by_options = megatron(
      R"("hybrid_layer_pattern": "MEM*E/*E/*E", "num_layers": 5, "hidden_size": 2688,
         "ffn_hidden_size": 1856, "moe_ffn_hidden_size": 1856, "num_attention_heads": 32,
         "num_query_groups": 2, "kv_channels": 128, "mamba_num_heads": 64, "mamba_head_dim": 64,
         "mamba_state_dim": 128, "mamba_num_groups": 8, "position_embedding_type": "none",
         "normalization": "RMSNorm", "norm_epsilon": 1e-5, "add_bias_linear": false,
         "untie_embeddings_and_output_weights": true, "squared_relu": true, "num_experts": 128,
         "moe_router_topk": 6, "moe_shared_expert_intermediate_size": 3712,
         "mtp_use_repeated_layer": true, "attention_dropout": 0, "hidden_dropout": 0,
         "vocab_size": 50304, "max_position_embeddings": 8192)");
  const Model by_file = read_model_config(
      R"({"model_type": "nemotron_h", "hybrid_override_pattern": "MEM*E", "hidden_size": 2688,
          "num_key_value_heads": 2, "intermediate_size": 1856, "mamba_num_heads": 64,
          "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
          "moe_shared_expert_intermediate_size": 3712, "vocab_size": 50304,
          "num_nextn_predict_layers": 2, "max_position_embeddings": 8192})",
      "c.json");
  EXPECT_TRUE(by_options.notes.empty());
  EXPECT_TRUE(by_file.notes.empty());
  StepOptions options{.precision = Precision::Bf16, .framework = "megatron"};
  options.sequence = 64;
  Trace of_options = build_trace(by_options, options), of_file = build_trace(by_file, options);
  of_options.family = of_file.family;
  EXPECT_EQ(of_options, of_file);
}

TEST(MegatronHybrid, HasTheDefaultsOfItsCommandLine) {
  const auto config = std::get<DecoderConfig>(megatron(R"("hybrid_layer_pattern": "M-*")").config);
  EXPECT_EQ(config.state_space.heads, 24);  // twice the width, in heads of 64
  EXPECT_FALSE(config.has_positions);
  EXPECT_EQ(config.activation, ActivationForm::Gelu);
  EXPECT_EQ(config.residual_dropout, 0.1);
  EXPECT_TRUE(config.mlp_bias);
}

// Its words go through the same embedding, with its places and its dropout.
TEST(MegatronHybrid, LooksUpFurtherWordsAsItDoesTheFirst) {
  const Trace trace = build_trace(
      megatron(R"("hybrid_layer_pattern": "M/-", "position_embedding_type": "learned_absolute")"),
      {.precision = Precision::Bf16, .framework = "megatron"});
  const auto has = [&](std::string_view name) {
    return std::ranges::find(trace.ops, name, &Op::name) != trace.ops.end();
  };
  EXPECT_TRUE(has("ahead1.position_embed"));
  EXPECT_TRUE(has("ahead1.drop"));
  EXPECT_EQ(std::ranges::count(trace.tensors, "position_embed.weight", &Tensor::name), 1);
}

// As options have it. Bridge's recipes of the hub's files repeat one, in the precision's dtype.
TEST(MegatronHybrid, PredictsFurtherTokensByBlocksOfTheirOwn) {
  const auto config =
      std::get<DecoderConfig>(megatron(R"("hybrid_layer_pattern": "M*/M/M")").config);
  EXPECT_EQ(config.further_tokens, 2);
  EXPECT_FALSE(config.repeats_further);
  EXPECT_FALSE(config.further_are_plain);
  const DecoderConfig of_file =
      read(R"("hybrid_override_pattern": "M*", "num_nextn_predict_layers": 2)");
  EXPECT_TRUE(of_file.repeats_further);
  EXPECT_TRUE(of_file.further_are_plain);
}

// The layer's own dropout stands behind its last product.
TEST(MegatronHybrid, DropsWhatAStateSpaceLayerAdds) {
  const Trace trace = build_trace(megatron(R"("hybrid_layer_pattern": "M")"),
                                  {.precision = Precision::Bf16, .framework = "megatron"});
  EXPECT_NE(std::ranges::find(trace.ops, "blocks.0.mixer.drop", &Op::name), trace.ops.end());
}

TEST(MegatronHybrid, SaysWhatIsWrongAndWhatToDo) {
  for (const Mistake& of :
       {Mistake{R"("num_layers": 2)",
                "c.json: need \"hybrid_layer_pattern\", which says what each block is"},
        Mistake{R"("hybrid_layer_pattern": "M|M")",
                "c.json: /hybrid_layer_pattern: stages are asked for with --mesh and --schedule; "
                "leave '|' out"},
        Mistake{R"("hybrid_layer_pattern": "MG")",
                "c.json: /hybrid_layer_pattern: 'G' is no block that is modelled (known: M state "
                "space, * attention, - MLP, E experts)"},
        Mistake{R"("hybrid_layer_pattern": "M*/M/*")",
                "c.json: /hybrid_layer_pattern: blocks that predict further tokens are alike; "
                "repeat one"},
        Mistake{R"("hybrid_layer_pattern": "M*", "num_layers": 3)",
                "c.json: /num_layers: hybrid_layer_pattern names 2 blocks; use as many"},
        Mistake{R"("hybrid_layer_pattern": "E", "add_bias_linear": false)",
                "c.json: blocks 'E' have experts; say how many"},
        Mistake{R"("hybrid_layer_pattern": "M", "swiglu": true, "squared_relu": true)",
                "c.json: /squared_relu: one activation; set either this or swiglu to false"}})
    EXPECT_EQ(error_of(megatron, of.members), of.error);
}

}  // namespace
}  // namespace tidemark::nemotron_config_test
