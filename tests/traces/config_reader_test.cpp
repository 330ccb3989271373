// A config.json gives its preset's parameters and its class's defaults; mistakes are refused.
#include "traces/models/config_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::config_reader_test {
namespace {

using testing::HasSubstr;

template <typename Config>
Config read(std::string_view json) {
  return std::get<Config>(read_model_config(json, "config.json").config);
}

std::string error_of(std::string_view json) {
  try {
    read_model_config(json, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::int64_t parameters(const Model& model) {
  StepOptions step{.batch = 1};
  if (!sees_images(model.config)) step.sequence = 16;
  std::int64_t count = 0;
  for (const Tensor& tensor : build_trace(model, step).tensors)
    if (tensor.category == Category::Parameter) count += numel(tensor.shape);
  return count;
}

class Example : public testing::TestWithParam<const char*> {};

TEST_P(Example, HasTheParametersOfItsPreset) {
  const Model from_file = find_model(TIDEMARK_SOURCE_DIR "/examples/" + std::string(GetParam()));
  EXPECT_EQ(parameters(from_file), parameters(find_model(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Published, Example,
                         testing::Values("vit-b-16", "deit-s", "swin-t", "bert-base", "gpt2",
                                         "llama-7b", "mistral-7b", "qwen3-8b"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// A config.json omits what equals its class's default.
TEST(ConfigReader, FillsInTheDefaultsOfEachClass) {
  EXPECT_EQ(read<BertConfig>(R"({"model_type": "bert"})"), BertConfig{});
  EXPECT_EQ(read<Gpt2Config>(R"({"model_type": "gpt2"})"), Gpt2Config{});
  EXPECT_EQ(read<DecoderConfig>(R"({"model_type": "llama"})"), DecoderConfig{});
  EXPECT_EQ(read<MvitConfig>(R"({"model_type": "mvit", "num_labels": 1000})"), MvitConfig{});
  const auto megatron = read<DecoderConfig>(R"({"model_type": "megatron-gpt"})");
  EXPECT_EQ(megatron.mlp, 4 * 768);
  EXPECT_TRUE(megatron.tied_head && megatron.learned_positions && megatron.qkv_bias);
  const auto gated = read<DecoderConfig>(
      R"({"model_type": "megatron-gpt", "hidden_size": 512, "num_attention_heads": 8,
          "swiglu": true, "add_bias_linear": false, "position_embedding_type": "rope"})");
  EXPECT_EQ(gated.mlp, 1344);  // 8/3 · 512 in whole 64s
  EXPECT_FALSE(gated.mlp_bias || gated.learned_positions);
  const auto mixture = read<DecoderConfig>(
      R"({"model_type": "megatron-gpt", "add_bias_linear": false, "num_experts": 8})");
  EXPECT_EQ(mixture.experts.per_token, 2);
  EXPECT_EQ(mixture.experts.width, mixture.mlp);
  EXPECT_EQ(megatron.head_norm, HeadNorm::None);
  const auto normed =
      read<DecoderConfig>(R"({"model_type": "megatron-gpt", "qk_layernorm": true})");
  EXPECT_EQ(normed.head_norm, HeadNorm::LayerPerHead);
  const auto rms_normed = read<DecoderConfig>(
      R"({"model_type": "megatron-gpt", "qk_layernorm": true, "normalization": "RMSNorm"})");
  EXPECT_EQ(rms_normed.head_norm, HeadNorm::PerHead);
  const auto pair = read<BertConfig>(R"({"model_type": "megatron-core-bert"})");
  EXPECT_EQ(pair, (BertConfig{.epsilon = 1e-5, .megatron = true, .head = Head::Pretraining}));
  const auto words =
      read<BertConfig>(R"({"model_type": "megatron-core-bert", "bert_binary_head": false})");
  EXPECT_EQ(words.head, Head::MaskedLanguage);
  EXPECT_EQ(words.token_types, 0);
  EXPECT_EQ(read<MegatronT5Config>(R"({"model_type": "megatron-t5"})"), MegatronT5Config{});
  const auto gated_t5 = read<MegatronT5Config>(
      R"({"model_type": "megatron-t5", "encoder_num_layers": 6, "swiglu": true,
          "normalization": "RMSNorm", "add_bias_linear": false})");
  EXPECT_EQ(gated_t5.decoder_depth, 6);
  EXPECT_EQ(gated_t5.mlp_form, MlpForm::GatedPacked);
  EXPECT_EQ(gated_t5.norm, NormForm::Rms);
  EXPECT_FALSE(gated_t5.bias);
  const auto roberta = read<BertConfig>(R"({"model_type": "roberta"})");
  EXPECT_EQ(roberta.vocabulary, 50265);
  EXPECT_EQ(roberta.first_position, 2);  // behind the padding index, 1
  const auto mistral = read<DecoderConfig>(R"({"model_type": "mistral"})");
  EXPECT_EQ(mistral.key_heads, 8);
  EXPECT_EQ(mistral.mlp, 14336);
  EXPECT_EQ(mistral.sliding_window, 4096);
  const auto qwen2 = read<DecoderConfig>(R"({"model_type": "qwen2"})");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.out_bias);
  EXPECT_EQ(qwen2.sliding_window, 0);  // off unless use_sliding_window
  const auto qwen3 = read<DecoderConfig>(R"({"model_type": "qwen3", "hidden_size": 1024,
                                           "num_attention_heads": 16, "num_key_value_heads": 8})");
  EXPECT_EQ(qwen3.head_norm, HeadNorm::PerHead);
  EXPECT_EQ(qwen3.head_width, 128);  // not 1024 / 16
  const auto vit = read<VitConfig>(R"({"model_type": "vit"})");
  EXPECT_EQ(vit.classes, 2);
  EXPECT_EQ(vit.prefix_tokens, 1);
  EXPECT_FALSE(vit.packed_qkv);
  EXPECT_EQ(read<VitConfig>(R"({"model_type": "deit"})").prefix_tokens, 2);
  EXPECT_EQ(read<SwinConfig>(R"({"model_type": "swin"})").drop_path, 0.1);
}

TEST(ConfigReader, LaterFamiliesHaveTheDefaultsOfTheirClasses) {
  EXPECT_EQ(read<BartConfig>(R"({"model_type": "bart"})"), BartConfig{});
  EXPECT_EQ(read<ModernBertConfig>(R"({"model_type": "modernbert"})"), ModernBertConfig{});
  EXPECT_EQ(read<BeitConfig>(R"({"model_type": "beit"})"), BeitConfig{});
  EXPECT_EQ(read<ClipConfig>(R"({"model_type": "clip_text_model"})"), ClipConfig{});
  EXPECT_EQ(read<DebertaConfig>(R"({"model_type": "deberta-v2"})").span, 0);
  const auto places = read<DebertaConfig>(R"({"model_type": "deberta-v2",
      "relative_attention": true, "position_buckets": 256, "pos_att_type": ["c2p"]})");
  EXPECT_EQ(places.span, 256);
  EXPECT_TRUE(places.content_to_place);
  EXPECT_FALSE(places.place_to_content);
  const auto falcon = read<DecoderConfig>(R"({"model_type": "falcon"})");
  EXPECT_EQ(falcon.key_heads, 1);
  EXPECT_EQ(falcon.mlp, 4 * 4544);
  EXPECT_TRUE(falcon.tied_head);
  const auto deepseek = read<DecoderConfig>(R"({"model_type": "deepseek_v3"})");
  EXPECT_EQ(deepseek.head_width, 192);
  EXPECT_EQ(deepseek.experts.shared_width, 2048);
  EXPECT_THAT(deepseek.dense_blocks, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(deepseek.further_tokens, 0);
  const auto further =
      read<DecoderConfig>(R"({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})");
  EXPECT_EQ(further.further_tokens, 1);
  EXPECT_FALSE(further.repeats_further);
  // Kimi K2 (arXiv 2507.20534) is DeepSeek-V3 with other sizes, and its file names that one's
  // class.
  const auto kimi = read<DecoderConfig>(R"({"model_type": "kimi_k2", "n_routed_experts": 384,
      "n_group": 1, "topk_group": 1, "architectures": ["DeepseekV3ForCausalLM"]})");
  EXPECT_EQ(kimi.family, "deepseek-v3");
  EXPECT_EQ(kimi.experts.count, 384);
  const auto plain = read<DecoderConfig>(R"({"model_type": "deepseek_v3", "q_lora_rank": null})");
  EXPECT_EQ(plain.latent.query_rank, 0);
}

// What the classes of transformers 4.57 take for absent fields.
TEST(ConfigReader, DecodersHaveTheDefaultsOfTheirClasses) {
  const auto gemma2 = read<DecoderConfig>(R"({"model_type": "gemma2"})");
  EXPECT_EQ(gemma2.head_width, 256);
  EXPECT_EQ(gemma2.key_heads, 4);
  EXPECT_EQ(gemma2.global_every, 2);
  EXPECT_EQ(gemma2.score_cap, 50);
  EXPECT_EQ(gemma2.logit_cap, 30);
  EXPECT_EQ(gemma2.embedding_factor, 48);
  EXPECT_EQ(gemma2.score_factor, 0);  // 1/√256 is the usual one
  EXPECT_TRUE(gemma2.tied_head);
  const auto gemma3 = read<DecoderConfig>(R"({"model_type": "gemma3_text"})");
  EXPECT_EQ(gemma3.global_every, 6);
  EXPECT_EQ(gemma3.rotary.theta, 1e6);
  EXPECT_EQ(gemma3.local_rotary->theta, 10000);
  EXPECT_EQ(gemma3.score_cap, 0);
  const auto neox = read<DecoderConfig>(R"({"model_type": "gpt_neox"})");
  EXPECT_EQ(neox.rotary_width, 24);
  EXPECT_EQ(neox.block, BlockForm::Parallel);
  const auto no_groups =
      read<DecoderConfig>(R"({"model_type": "gpt_neox", "num_key_value_heads": 1})");
  EXPECT_EQ(no_groups.key_heads, 64);  // its class has no such field
  const auto opt = read<DecoderConfig>(R"({"model_type": "opt"})");
  EXPECT_EQ(opt.residual_dropout, 0.1);
  EXPECT_EQ(opt.query_factor, 0.125);
  EXPECT_EQ(opt.embedding_width, 0);
  const auto phi = read<DecoderConfig>(R"({"model_type": "phi"})");
  EXPECT_EQ(phi.rotary_width, 32);
  EXPECT_TRUE(phi.head_bias);
  EXPECT_EQ(read<DecoderConfig>(R"({"model_type": "stablelm"})").rotary_width, 20);
  EXPECT_EQ(read<DecoderConfig>(R"({"model_type": "stablelm"})").classifier_dropout, 0);
  EXPECT_EQ(read<DecoderConfig>(R"({"model_type": "starcoder2"})").key_heads, 2);
}

TEST(ConfigReader, MixturesHaveTheDefaultsOfTheirClasses) {
  const auto mixtral = read<DecoderConfig>(R"({"model_type": "mixtral"})");
  EXPECT_EQ(
      mixtral.experts,
      (ExpertsConfig{
          .count = 8, .per_token = 2, .width = 14336, .renormalizes = true, .float_shares = true}));
  EXPECT_EQ(mixtral.rotary.theta, 1e6);
  EXPECT_EQ(mixtral.sliding_window, 0);
  const auto qwen2 = read<DecoderConfig>(R"({"model_type": "qwen2_moe"})");
  EXPECT_EQ(qwen2.experts,
            (ExpertsConfig{.count = 60, .per_token = 4, .width = 1408, .shared_width = 5632}));
  EXPECT_TRUE(qwen2.qkv_bias);
  const auto qwen3 = read<DecoderConfig>(
      R"({"model_type": "qwen3_moe", "norm_topk_prob": true, "decoder_sparse_step": 2,
          "mlp_only_layers": [3, 5]})");
  EXPECT_EQ(qwen3.head_width, 64);  // of its 4.57 class; files say 128
  EXPECT_EQ(qwen3.experts.every, 2);
  EXPECT_TRUE(qwen3.experts.renormalizes);
  EXPECT_EQ(qwen3.dense_blocks, (std::vector<std::int64_t>{3, 5}));
  const auto olmoe = read<DecoderConfig>(R"({"model_type": "olmoe"})");
  EXPECT_EQ(olmoe.experts, (ExpertsConfig{.count = 64, .per_token = 8, .width = 2048}));
}

TEST(ConfigReader, T5HasTheDefaultsOfItsClass) {
  EXPECT_EQ(read<T5Config>(R"({"model_type": "t5"})"), T5Config{});
  const auto flan =
      read<T5Config>(R"({"model_type": "t5", "num_layers": 4, "feed_forward_proj": "gated-gelu"})");
  EXPECT_EQ(flan.decoder_depth, 4);
  EXPECT_EQ(flan.mlp_form, MlpForm::Gated);
  EXPECT_EQ(flan.activation, ActivationForm::GeluComposed);
}

TEST(ConfigReader, DecodersReadWhatChangesTheirShape) {
  const auto gemma = read<DecoderConfig>(
      R"({"model_type": "gemma2", "num_hidden_layers": 3, "query_pre_attn_scalar": 64,
          "attn_logit_softcapping": null, "final_logit_softcapping": null, "layer_types":
          ["sliding_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(gemma.global_every, 3);
  EXPECT_EQ(gemma.score_factor, 0.125);
  EXPECT_EQ(gemma.score_cap, 0);
  EXPECT_EQ(gemma.logit_cap, 0);
  const auto opt = read<DecoderConfig>(
      R"({"model_type": "opt", "do_layer_norm_before": false, "word_embed_proj_dim": 512,
          "hidden_size": 1024, "num_attention_heads": 16, "ffn_dim": 4096, "enable_bias": false})");
  EXPECT_EQ(opt.block, BlockForm::PostNorm);
  EXPECT_EQ(opt.embedding_width, 512);
  EXPECT_EQ(opt.mlp, 4096);
  EXPECT_FALSE(opt.mlp_bias);
  const auto phi3 = read<DecoderConfig>(
      R"({"model_type": "phi3", "partial_rotary_factor": 0.75, "sliding_window": 2047})");
  EXPECT_EQ(phi3.rotary_width, 72);
  EXPECT_EQ(phi3.sliding_window, 2047);
  const auto neox = read<DecoderConfig>(
      R"({"model_type": "gpt_neox", "use_parallel_residual": false, "rotary_emb_base": 500,
          "attention_bias": false})");
  EXPECT_EQ(neox.block, BlockForm::PreNorm);
  EXPECT_EQ(neox.rotary.theta, 500);
  EXPECT_FALSE(neox.qkv_bias);
  EXPECT_EQ(
      read<DecoderConfig>(R"({"model_type": "stablelm", "use_parallel_residual": true})").block,
      BlockForm::ParallelOneNorm);
  EXPECT_EQ(read<DecoderConfig>(R"({"model_type": "phi", "qk_layernorm": true})").head_norm,
            HeadNorm::LayerPerHead);
  for (const auto& [said, norm] :
       {std::pair("true", HeadNorm::LayerOfEachHead), std::pair("false", HeadNorm::None)})
    EXPECT_EQ(read<DecoderConfig>(
                  fmt::format(R"({{"model_type": "stablelm", "qk_layernorm": {}}})", said))
                  .head_norm,
              norm);
}

TEST(ConfigReader, EncodersHaveTheDefaultsOfTheirClasses) {
  const auto xlm = read<BertConfig>(R"({"model_type": "xlm-roberta"})");
  EXPECT_EQ(xlm.vocabulary, 30522);
  EXPECT_EQ(xlm.first_position, 2);
  EXPECT_EQ(read<BertConfig>(R"({"model_type": "camembert"})"), xlm);
  const auto distilbert = read<BertConfig>(
      R"({"model_type": "distilbert", "dim": 512, "n_heads": 8, "hidden_dim": 1024, "n_layers": 4})");
  EXPECT_EQ(distilbert.width, 512);
  EXPECT_EQ(distilbert.depth, 4);
  EXPECT_EQ(distilbert.heads, 8);
  EXPECT_EQ(distilbert.mlp, 1024);
  EXPECT_EQ(distilbert.token_types, 0);
  EXPECT_EQ(distilbert.classifier_dropout, 0.2);
  const auto dinov2 = read<VitConfig>(R"({"model_type": "dinov2", "hidden_size": 384})");
  EXPECT_EQ(dinov2.patch, 14);
  EXPECT_EQ(dinov2.mlp, 1536);
  EXPECT_TRUE(dinov2.layer_scale && dinov2.pools_patches && !dinov2.gated_mlp);
  const auto gated = read<VitConfig>(
      R"({"model_type": "dinov2", "hidden_size": 1536, "num_attention_heads": 24,
          "use_swiglu_ffn": true})");
  EXPECT_EQ(gated.mlp, 4096);  // as in dinov2-giant
}

TEST(ConfigReader, ElectraHasTheDefaultsOfItsClass) {
  const auto electra = read<BertConfig>(R"({"model_type": "electra"})");
  EXPECT_EQ(electra.width, 256);
  EXPECT_EQ(electra.embedding_width, 128);
  EXPECT_TRUE(electra.electra);
  const auto base = read<BertConfig>(
      R"({"model_type": "electra", "hidden_size": 768, "num_attention_heads": 12,
          "embedding_size": 768})");
  EXPECT_EQ(base.embedding_width, 0);
}

TEST(ConfigReader, LongRopeIsPlannedAsPlainRotation) {
  const Model model = read_model_config(
      R"({"model_type": "phi3", "rope_scaling": {"type": "longrope", "long_factor": [1.5]}})", "c");
  EXPECT_EQ(std::get<DecoderConfig>(model.config).rotary, Rotary{});
  ASSERT_EQ(model.notes.size(), 1u);
  EXPECT_THAT(model.notes[0], testing::HasSubstr("change values, not bytes"));
}

TEST(ConfigReader, NullMeansAsManyKeyHeadsAsHeads) {
  constexpr auto json = R"({"model_type": "qwen2", "num_attention_heads": 64,
                            "num_key_value_heads": null})";
  EXPECT_EQ(read<DecoderConfig>(json).key_heads, 64);
}

TEST(ConfigReader, NullTurnsMistralsWindowOff) {
  constexpr auto json = R"({"model_type": "mistral", "sliding_window": null})";
  EXPECT_EQ(read<DecoderConfig>(json).sliding_window, 0);
}

TEST(ConfigReader, LabelsNameTheClasses) {
  constexpr auto json =
      R"({"model_type": "vit", "id2label": {"0": "cat", "1": "dog", "2": "eel"}})";
  EXPECT_EQ(read<VitConfig>(json).classes, 3);
}

TEST(ConfigReader, Gpt2TakesTheCommonNamesOfItsFields) {
  constexpr auto json = R"({"model_type": "gpt2", "hidden_size": 1024, "n_head": 16})";
  EXPECT_EQ(read<Gpt2Config>(json).width, 1024);
  EXPECT_EQ(read<Gpt2Config>(json).mlp, 4096);  // n_inner: four times the width
}

TEST(ConfigReader, AcceptsKeysThatMemoryDoesNotDependOn) {
  constexpr auto json = R"({"model_type": "bert", "initializer_range": 0.02, "use_cache": true,
                            "architectures": ["BertForMaskedLM"], "torch_dtype": "float32"})";
  EXPECT_EQ(read<BertConfig>(json), BertConfig{});
}

struct Refusal {
  const char* name;
  const char* json;
  const char* message;
};

class Refuses : public testing::TestWithParam<Refusal> {};

TEST_P(Refuses, WithPlaceAndRemedy) {
  EXPECT_THAT(error_of(GetParam().json), HasSubstr(GetParam().message));
  EXPECT_EQ(error_of(GetParam().json).rfind("config.json: ", 0), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Refuses,
    testing::Values(
        Refusal{"NoModelType", R"({"hidden_size": 768})", "model_type"},
        Refusal{
            "UnknownModelType", R"({"model_type": "mamba"})",
            "/model_type: unknown model_type 'mamba' (known: vit, deit, dinov2, beit, vit_mae, "
            "pvt, pvt_v2, swin, mvit, bert, roberta, xlm-roberta, camembert, distilbert, "
            "electra, gpt2, megatron-gpt, megatron-hybrid, megatron-core-bert, megatron-t5, llama, "
            "mistral, qwen2, qwen3, "
            "gemma, gemma2, "
            "gemma3_text, phi, phi3, gpt_neox, opt, stablelm, olmo2, olmo3, granite, smollm3, "
            "seed_oss, exaone4, hunyuan_v1_dense, arcee, glm4, ernie4_5, cohere, cohere2, "
            "starcoder2, mixtral, "
            "qwen2_moe, qwen3_moe, olmoe, gpt_oss, t5, bart, whisper, falcon, modernbert, "
            "deberta-v2, "
            "deepseek_v2, deepseek_v3, kimi_k2, glm4_moe, nemotron_h, clip_text_model, "
            "clip_vision_model, "
            "siglip_text_model, "
            "siglip_vision_model); tidemark capture config.json takes any that the installed "
            "transformers has"},
        Refusal{"MegatronBertThatRotates",
                R"({"model_type": "megatron-core-bert", "position_embedding_type": "rope"})",
                "/position_embedding_type: not simulated for this family; use learned_absolute"},
        Refusal{"MegatronT5ThatBiasesScores",
                R"({"model_type": "megatron-t5", "position_embedding_type": "relative"})",
                "/position_embedding_type: not simulated; use learned_absolute or rope"},
        Refusal{"MegatronT5ThatRotates",
                R"({"model_type": "megatron-t5", "position_embedding_type": "rope"})",
                "/position_embedding_type: not simulated for this family; use learned_absolute"},
        Refusal{
            "MegatronT5OfGroupedHeads", R"({"model_type": "megatron-t5", "num_query_groups": 4})",
            "/num_query_groups: who attends to another has as many heads of keys; leave it out"},
        Refusal{"MegatronT5WithNormedHeads",
                R"({"model_type": "megatron-t5", "qk_layernorm": true})",
                "/qk_layernorm: not simulated for this family; remove it"},
        Refusal{"ClassTokenOnAReducedGrid",
                R"({"model_type": "pvt", "sequence_reduction_ratios": [8, 4, 2, 2]})",
                "/sequence_reduction_ratios: the last stage has a class token"},
        Refusal{"TooFewStages", R"({"model_type": "pvt_v2", "depths": [2, 2]})",
                "/depths: 2 entries for 4 stages"},
        Refusal{"EveryPatchMasked", R"({"model_type": "vit_mae", "mask_ratio": 1})",
                "/mask_ratio: no patch is left"},
        Refusal{"ExpertsOfNobody", R"({"model_type": "deepseek_v2"})",
                "says how many experts a token goes to"},
        Refusal{"SeveralModels",
                R"({"model_type": "clip", "text_config": {"model_type": "clip_text_model"},
                    "vision_config": {"model_type": "clip_vision_model"}})",
                "/model_type: model_type 'clip' is several models, which are planned one by one: "
                "text_config (clip_text_model), vision_config (clip_vision_model); cut one out: "
                "jq .text_config config.json > text_config.json"},
        Refusal{"MistakesOfAModelInside",
                R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
                    "hidden_size": 0}})",
                "/text_config/hidden_size"},
        Refusal{"MisspeltModelType", R"({"model_type": "lama"})", "did you mean 'llama'?"},
        Refusal{"HeadsThatDoNotDivide",
                R"({"model_type": "vit", "hidden_size": 770, "num_attention_heads": 12})",
                "/num_attention_heads: num_attention_heads = 12 does not divide hidden_size = 770; "
                "use a divisor of it"},
        Refusal{"DefaultHeadsThatDoNotDivide", R"({"model_type": "bert", "hidden_size": 770})",
                "num_attention_heads = 12 does not divide hidden_size = 770"},
        Refusal{"KeyHeadsThatDoNotDivide", R"({"model_type": "llama", "num_key_value_heads": 5})",
                "/num_key_value_heads: num_key_value_heads = 5 does not divide "
                "num_attention_heads = 32"},
        Refusal{"NoWidth", R"({"model_type": "llama", "hidden_size": 0})", "/hidden_size"},
        Refusal{"HugeDepth", R"({"model_type": "gpt2", "n_layer": 1000000})", "/n_layer"},
        Refusal{"FractionalDepth", R"({"model_type": "gpt2", "n_layer": 1.5})", "/n_layer"},
        Refusal{"TextForANumber", R"({"model_type": "bert", "vocab_size": "30522"})",
                "/vocab_size"},
        Refusal{"UnknownActivation", R"({"model_type": "bert", "hidden_act": "mish"})",
                "/hidden_act: activation 'mish' is not modelled (known: gelu, gelu_pytorch_tanh, "
                "gelu_new, quick_gelu, silu, swish, relu, relu2)"},
        Refusal{"MisspeltActivation", R"({"model_type": "llama", "hidden_act": "siluu"})",
                "/hidden_act: activation 'siluu' is not modelled (did you mean 'silu'? known: "
                "gelu, "},
        Refusal{"NullForASize", R"({"model_type": "llama", "hidden_size": null})",
                "/hidden_size: found null; need a whole number"},
        Refusal{"NullForASizeOfT5", R"({"model_type": "t5", "d_ff": null})",
                "/d_ff: found null; need a whole number"},
        Refusal{"Timeline", R"({"format": "tidemark-timeline", "version": 2})",
                "is a timeline, and no model (tidemark view, explain MODEL --beside and diff take "
                "it; its name ends in .timeline.json)"},
        Refusal{"Report", R"({"format": "tidemark-compare-1"})",
                "is a report of tidemark compare, and no model (tidemark diff takes it)"},
        Refusal{"OtherReport", R"({"format": "tidemark-snapshot-1"})",
                "is a report of Tidemark's, and no model (no command takes it)"},
        Refusal{"ChromeTrace", R"({"traceEvents": []})",
                "is a trace of Chrome's format, and no model (Perfetto and chrome://tracing show "
                "it)"},
        Refusal{"AnotherFormat", R"({"format": "gguf"})", "found no key 'model_type'"},
        Refusal{"UnknownGatedActivation",
                R"({"model_type": "t5", "feed_forward_proj": "gated-mish"})",
                "/feed_forward_proj: activation 'gated-mish' is not modelled (known, each with "
                "\"gated-\" before it, too: gelu, "},
        Refusal{"PartOfAHeadThatDoesNotTurn",
                R"({"model_type": "llama", "partial_rotary_factor": 0.5})",
                "/partial_rotary_factor: rotating a part of each head is not modelled for this "
                "family; use 1"},
        Refusal{"OddPartOfAHead",
                R"({"model_type": "gpt_neox", "hidden_size": 128, "num_attention_heads": 8,
                    "rotary_pct": 0.2})",
                "3 of the 16 elements of a head turn"},
        Refusal{"LayerTypesInAnotherOrder",
                R"({"model_type": "gemma2", "num_hidden_layers": 4, "layer_types":
                    ["sliding_attention", "full_attention", "full_attention", "full_attention"]})",
                "full attention in every 2-th layer is modelled, other orders are not; layer 2 "
                "differs"},
        Refusal{"TooFewLayerTypes",
                R"({"model_type": "gemma2", "num_hidden_layers": 4, "layer_types":
                    ["full_attention"]})",
                "1 layer types for 4 layers"},
        Refusal{"BiasesOfFalcon", R"({"model_type": "falcon", "alibi": false, "bias": true})",
                "/bias: 'bias' is not modelled"},
        Refusal{"QuantizedWeights",
                R"({"model_type": "llama", "quantization_config": {"bits": 4}})",
                "/quantization_config: 'quantization_config' is not modelled: weights in few bits; "
                "remove it"},
        Refusal{"Experts", R"({"model_type": "qwen3", "num_experts": 128})",
                "/num_experts: 'num_experts' is not modelled: a mixture of experts"},
        Refusal{"MoreExpertsThanThereAre", R"({"model_type": "mixtral", "num_experts_per_tok": 9})",
                "/num_experts_per_tok: 9 of 8 experts; use 8 or less"},
        Refusal{"BalancingLoss", R"({"model_type": "olmoe", "output_router_logits": true})",
                "/output_router_logits: 'output_router_logits' is not modelled"},
        Refusal{"NoiseOfTheRouter", R"({"model_type": "mixtral", "router_jitter_noise": 0.1})",
                "/router_jitter_noise: noise on what goes into the router; use 0"},
        Refusal{"FallingScores", R"({"model_type": "falcon", "alibi": true})", "/alibi"},
        Refusal{"LayersLeftOut", R"({"model_type": "bart", "encoder_layerdrop": 0.1})",
                "/encoder_layerdrop: whole layers left out at random are not modelled; use 0"},
        Refusal{"MaskedSound", R"({"model_type": "whisper", "apply_spec_augment": true})",
                "/apply_spec_augment"},
        Refusal{"AConvolutionBesideABlock",
                R"({"model_type": "deberta-v2", "conv_kernel_size": 3})", "/conv_kernel_size"},
        Refusal{"GroupsThatDoNotFit", R"({"model_type": "deepseek_v3", "n_group": 7})",
                "/n_group: n_group = 7 does not divide n_routed_experts = 256"},
        Refusal{"RouterInDoubles",
                R"({"model_type": "megatron-gpt", "add_bias_linear": false, "num_experts": 4,
                    "moe_router_dtype": "fp64"})",
                "not simulated; use fp32, or leave it out"},
        Refusal{"ExpertsOfOtherBlocks",
                R"({"model_type": "megatron-gpt", "add_bias_linear": false, "num_experts": 4,
                    "num_layers": 3, "moe_layer_freq": [0, 1]})",
                "/moe_layer_freq: 2 blocks, but num_layers says 3; use as many"},
        Refusal{"MoreGroupsThanThereAre", R"({"model_type": "deepseek_v3", "topk_group": 9})",
                "/topk_group: 9 of 8 groups; use 8 or less"},
        Refusal{"ADecoder", R"({"model_type": "bert", "is_decoder": true})", "/is_decoder"},
        Refusal{"CrossAttention", R"({"model_type": "gpt2", "add_cross_attention": true})",
                "/add_cross_attention"},
        Refusal{"RelativePositions",
                R"({"model_type": "bert", "position_embedding_type": "relative_key"})",
                "/position_embedding_type"},
        Refusal{"Fp32Scores", R"({"model_type": "gpt2", "reorder_and_upcast_attn": true})",
                "/reorder_and_upcast_attn"},
        Refusal{"UnscaledScores", R"({"model_type": "gpt2", "scale_attn_weights": false})",
                "/scale_attn_weights"},
        Refusal{"OddHeadWidth", R"({"model_type": "llama", "head_dim": 63})",
                "/head_dim: rotary positions need an even head width, not 63"},
        Refusal{"NoRobertaPositions", R"({"model_type": "roberta", "max_position_embeddings": 2})",
                "/max_position_embeddings: 2 positions, of which the first 2 are never used"},
        Refusal{"LabelsThatDisagree",
                R"({"model_type": "vit", "num_labels": 10, "id2label": {"0": "cat"}})",
                "/num_labels: num_labels = 10 but id2label names 1 classes; remove one of the two"},
        Refusal{"NoLabels", R"({"model_type": "vit", "id2label": {}})", "/id2label: no labels"},
        Refusal{"PatchesThatDoNotFit", R"({"model_type": "vit", "image_size": 225})",
                "patch_size = 16 does not divide image_size = 225"},
        Refusal{"StagesThatDisagree", R"({"model_type": "swin", "depths": [2, 2]})",
                "4 entries but depths has 2; give one per stage"},
        Refusal{"NoStages", R"({"model_type": "swin", "depths": []})", "/depths: no stages"},
        Refusal{"TooManyStages", R"({"model_type": "swin", "depths": [1, 1, 1, 1, 1, 1, 1, 1, 1]})",
                "/depths: more than 8 stages"},
        Refusal{"DerivedWidthThatDisagrees", R"({"model_type": "swin", "hidden_size": 1024})",
                "/hidden_size: hidden_size = 1024 contradicts the stages, which make it 768; "
                "remove it"},
        Refusal{"NoHiddenUnits", R"({"model_type": "swin", "mlp_ratio": 0.001})",
                "/mlp_ratio: mlp_ratio = 0.001 leaves no hidden units of 96"},
        Refusal{"EvenPoolKernel", R"({"model_type": "mvit", "pool_kernel": 2})", "/pool_kernel"},
        Refusal{"ClassTokenWithRelativePositions",
                R"({"model_type": "mvit", "cls_embed_on": true})", "/cls_embed_on"},
        Refusal{"UnknownRopeType",
                R"({"model_type": "llama", "rope_scaling": {"rope_type": "lama3", "factor": 8}})",
                "/rope_scaling/rope_type: unknown rope_type 'lama3' (did you mean 'llama3'? known: "
                "default, linear, dynamic, yarn, llama3)"},
        Refusal{"RopeWithoutItsFactor",
                R"({"model_type": "llama", "rope_scaling": {"type": "linear"}})", "factor"},
        Refusal{"PartlyRotatedHeads", R"({"model_type": "llama", "partial_rotary_factor": 0.5})",
                "/partial_rotary_factor"},
        Refusal{"UnknownDtype", R"({"model_type": "llama", "torch_dtype": "float64"})",
                "/torch_dtype: unknown dtype 'float64'"},
        Refusal{"MisspeltFieldOfOurOwn", R"({"model_type": "mvit", "embed_dims": 96})",
                "embed_dim"}),
    [](const auto& test) { return std::string(test.param.name); });

// Of a decoder that also sees the file has two models, and the weights' dtype outside of both.
TEST(ConfigReader, PlansTheLanguageModelOfSeveral) {
  constexpr std::string_view text = R"({"model_type": "gemma3_text", "num_hidden_layers": 34,
                                        "hidden_size": 2560, "intermediate_size": 10240})";
  const Model alone = read_model_config(text, "config.json");
  const Model inside = read_model_config(
      fmt::format(R"({{"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": {},
                       "architectures": ["Gemma3ForConditionalGeneration"],
                       "vision_config": {{"model_type": "siglip_vision_model"}}}})",
                  text),
      "config.json");
  EXPECT_EQ(inside.config, alone.config);
  EXPECT_EQ(inside.precision, Precision::Bf16);
  EXPECT_THAT(inside.notes, testing::Contains(HasSubstr("only the language model of this 'gemma3'"
                                                        " is planned (text_config)")));
}

TEST(ConfigReader, ShowsForeignTextOnOneLine) {
  const std::string message = error_of("{\"model_type\": \"a\\nb\"}");
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace
}  // namespace tidemark::config_reader_test
