// What the readers of config.json share: fields with a default and bounds, and refusals that name
// the place. The bounds keep every product of two fields far below 2^63.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/json_reader.h"
#include "traces/models/model_config.h"

namespace tidemark::config {

inline constexpr std::int64_t most_blocks = 4096;
inline constexpr std::int64_t most_heads = 4096;
inline constexpr std::int64_t most_experts = 1024;
inline constexpr std::int64_t widest = std::int64_t{1} << 20;
inline constexpr std::int64_t most_words = std::int64_t{1} << 24;
inline constexpr std::int64_t most_positions = std::int64_t{1} << 24;
inline constexpr std::int64_t largest_image = std::int64_t{1} << 14;

/// The members of one config.json. They remember what was asked for: the rest was not read.
class Fields {
 public:
  explicit Fields(JsonView root) : root_(root) {}

  /// Nothing when the key is absent or null.
  std::optional<JsonView> find(std::string_view key) { return asked(key).find(key); }
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min = 0,
                          std::int64_t max = largest_size) {
    return asked(key).integer_or(key, fallback, min, max);
  }
  double number_or(std::string_view key, double fallback, double min, double max) {
    return asked(key).number_or(key, fallback, min, max);
  }
  std::string_view text_or(std::string_view key, std::string_view fallback) {
    return asked(key).text_or(key, fallback);
  }
  bool boolean_or(std::string_view key, bool fallback) {
    return asked(key).boolean_or(key, fallback);
  }
  /// Even if it is null.
  std::optional<JsonView> member(std::string_view key);
  const JsonView& json() const { return root_; }
  const std::vector<std::string_view>& asked() const { return asked_; }

 private:
  const JsonView& asked(std::string_view key) { return asked_.push_back(key), root_; }

  JsonView root_;
  std::vector<std::string_view> asked_;
};

/// Fails if the file says that it is no model.
void refuse_other_file(const JsonView& root);

/// Fails at the field if the file has it, else at the whole object.
[[noreturn]] void fail_at(Fields& root, std::string_view key, std::string_view problem);

std::int64_t count(Fields& root, std::string_view key, std::int64_t fallback, std::int64_t most);
double probability(Fields& root, std::string_view key, double fallback);
/// The first of `keys` that is there.
std::optional<double> optional_probability(Fields& root,
                                           std::initializer_list<std::string_view> keys);
double epsilon(Fields& root, std::string_view key, double fallback);

/// The text is one of `known`, the first of which is the default.
std::string_view one_of(Fields& root, std::string_view key,
                        std::initializer_list<std::string_view> known);

/// Of transformers' ACT2FN those of which it is known what they keep.
ActivationForm activation_form(Fields& root, std::string_view key, ActivationForm fallback);
std::optional<ActivationForm> find_activation(std::string_view name);
/// "silu, gelu, …"
std::string known_activations();

/// The `parts` that `key` asks for must divide the `whole` that is called `whole_key`.
void require_divides(Fields& root, std::string_view key, std::int64_t parts,
                     std::string_view whole_key, std::int64_t whole);

/// `key` asks for something that changes memory in a way that is not modelled: absent, null, false
/// and 0 are fine.
void refuse(Fields& root, std::string_view key, std::string_view why);

inline constexpr std::int64_t most_stages = 8;
/// A list with a number per stage of a pyramid, each from 1 to `most`.
std::vector<std::int64_t> per_stage(Fields& root, std::string_view key,
                                    std::vector<std::int64_t> fallback, std::int64_t most);

/// Classes of a classifier: `num_labels`, or the length of `id2label`, or two.
std::int64_t classes(Fields& root);

/// `usual_theta` where the file says none.
Rotary rotary(Fields& root, std::int64_t positions, double usual_theta = Rotary().theta);

/// The head that `architectures` names; `prefix` is what the family's classes begin with.
void read_head(Fields& root, std::string_view prefix, Model& model);

/// `dtype`, or `torch_dtype` as it was called before.
void read_precision(Fields& root, Model& model);

/// Does the file say that weights have four bits, as those of gpt-oss' experts?
bool has_mxfp4_weights(Fields& root);

/// Keys that mean something else than training, or nothing that is known here.
void note_what_was_not_read(Fields& root, Model& model);

ModelConfig read_vit(Fields& root);
ModelConfig read_deit(Fields& root);
ModelConfig read_dinov2(Fields& root);
ModelConfig read_beit(Fields& root);
ModelConfig read_vit_mae(Fields& root);
ModelConfig read_pvt(Fields& root);
ModelConfig read_pvt_v2(Fields& root);
ModelConfig read_swin(Fields& root);
ModelConfig read_mvit(Fields& root);
ModelConfig read_bert(Fields& root);
ModelConfig read_roberta(Fields& root);
ModelConfig read_roberta_kin(Fields& root);
ModelConfig read_distilbert(Fields& root);
ModelConfig read_electra(Fields& root);
ModelConfig read_gpt2(Fields& root);
ModelConfig read_megatron_gpt(Fields& root);
ModelConfig read_megatron_hybrid(Fields& root);
ModelConfig read_megatron_bert(Fields& root);
ModelConfig read_megatron_t5(Fields& root);
ModelConfig read_llama(Fields& root);
ModelConfig read_mistral(Fields& root);
ModelConfig read_qwen2(Fields& root);
ModelConfig read_qwen3(Fields& root);
ModelConfig read_gemma(Fields& root);
ModelConfig read_gemma2(Fields& root);
ModelConfig read_gemma3_text(Fields& root);
ModelConfig read_phi(Fields& root);
ModelConfig read_phi3(Fields& root);
ModelConfig read_gpt_neox(Fields& root);
ModelConfig read_opt(Fields& root);
ModelConfig read_stablelm(Fields& root);
ModelConfig read_olmo2(Fields& root);
ModelConfig read_olmo3(Fields& root);
ModelConfig read_granite(Fields& root);
ModelConfig read_smollm3(Fields& root);
ModelConfig read_seed_oss(Fields& root);
ModelConfig read_exaone4(Fields& root);
ModelConfig read_hunyuan(Fields& root);
ModelConfig read_arcee(Fields& root);
ModelConfig read_glm4(Fields& root);
ModelConfig read_ernie(Fields& root);
ModelConfig read_cohere(Fields& root);
ModelConfig read_cohere2(Fields& root);
ModelConfig read_gpt_oss(Fields& root);
ModelConfig read_starcoder2(Fields& root);
ModelConfig read_mixtral(Fields& root);
ModelConfig read_qwen2_moe(Fields& root);
ModelConfig read_qwen3_moe(Fields& root);
ModelConfig read_olmoe(Fields& root);
ModelConfig read_t5(Fields& root);
ModelConfig read_bart(Fields& root);
ModelConfig read_whisper(Fields& root);
ModelConfig read_falcon(Fields& root);
ModelConfig read_modernbert(Fields& root);
ModelConfig read_deberta(Fields& root);
ModelConfig read_deepseek_v2(Fields& root);
ModelConfig read_deepseek_v3(Fields& root);
ModelConfig read_glm4_moe(Fields& root);
ModelConfig read_nemotron_h(Fields& root);
ModelConfig read_clip_text(Fields& root);
ModelConfig read_clip_vision(Fields& root);
ModelConfig read_siglip_text(Fields& root);
ModelConfig read_siglip_vision(Fields& root);

}  // namespace tidemark::config
