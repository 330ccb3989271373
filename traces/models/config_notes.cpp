// What a config.json says that no reader asks for: requests, misspelt keys, and keys without effect
// on a training step.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "traces/models/config_fields.h"

namespace tidemark::config {
namespace {

// Keys of transformers' configuration classes that change nothing of what a training step keeps.
constexpr auto without_effect = std::to_array<std::string_view>({"_name_or_path",
                                                                 "_num_labels",
                                                                 "bad_words_ids",
                                                                 "begin_suppress_tokens",
                                                                 "bos_token_id",
                                                                 "chunk_size_feed_forward",
                                                                 "classifier_dropout",
                                                                 "classifier_proj_size",
                                                                 "cls_token_id",
                                                                 "cross_attention_hidden_size",
                                                                 "decoder_start_token_id",
                                                                 "dense_act_fn",
                                                                 "deterministic_flash_attn",
                                                                 "directionality",
                                                                 "diversity_penalty",
                                                                 "do_sample",
                                                                 "early_stopping",
                                                                 "encoder_no_repeat_ngram_size",
                                                                 "encoder_stride",
                                                                 "eos_token_id",
                                                                 "exponential_decay_length_penalty",
                                                                 "finetuning_task",
                                                                 "forced_bos_token_id",
                                                                 "forced_eos_token_id",
                                                                 "id2label",
                                                                 "init_std",
                                                                 "initializer_cutoff_factor",
                                                                 "initializer_factor",
                                                                 "initializer_range",
                                                                 "is_encoder_decoder",
                                                                 "is_gated_act",
                                                                 "label2id",
                                                                 "layer_types",
                                                                 "layerscale_value",
                                                                 "length_penalty",
                                                                 "mask_feature_length",
                                                                 "mask_feature_min_masks",
                                                                 "mask_feature_prob",
                                                                 "mask_time_length",
                                                                 "mask_time_min_masks",
                                                                 "mask_time_prob",
                                                                 "mask_token_id",
                                                                 "max_length",
                                                                 "max_window_layers",
                                                                 "median_filter_width",
                                                                 "min_length",
                                                                 "n_ctx",
                                                                 "n_positions",
                                                                 "no_repeat_ngram_size",
                                                                 "num_beam_groups",
                                                                 "num_beams",
                                                                 "num_return_sequences",
                                                                 "original_max_position_embeddings",
                                                                 "out_features",
                                                                 "out_indices",
                                                                 "output_attentions",
                                                                 "output_hidden_states",
                                                                 "output_past",
                                                                 "output_scores",
                                                                 "pad_token_id",
                                                                 "path_norm",
                                                                 "pooler_act",
                                                                 "pooler_fc_size",
                                                                 "pooler_num_attention_heads",
                                                                 "pooler_num_fc_layers",
                                                                 "pooler_output_size",
                                                                 "pooler_size_per_head",
                                                                 "pooler_type",
                                                                 "prefix",
                                                                 "pretraining_tp",
                                                                 "problem_type",
                                                                 "projection_dim",
                                                                 "remove_invalid_values",
                                                                 "repetition_penalty",
                                                                 "reshape_hidden_states",
                                                                 "return_dict",
                                                                 "return_dict_in_generate",
                                                                 "routed_scaling_factor",
                                                                 "router_aux_loss_coef",
                                                                 "semantic_loss_ignore_index",
                                                                 "sep_token_id",
                                                                 "stage_names",
                                                                 "summary_activation",
                                                                 "summary_first_dropout",
                                                                 "summary_proj_to_labels",
                                                                 "summary_type",
                                                                 "summary_use_proj",
                                                                 "suppress_tokens",
                                                                 "task_specific_params",
                                                                 "temperature",
                                                                 "tf_legacy_loss",
                                                                 "tie_encoder_decoder",
                                                                 "tokenizer_class",
                                                                 "top_k",
                                                                 "top_p",
                                                                 "torchscript",
                                                                 "transformers_version",
                                                                 "typical_p",
                                                                 "unk_token_id",
                                                                 "use_bfloat16",
                                                                 "use_cache"});
static_assert(std::ranges::is_sorted(without_effect));

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// A key is taken for a misspelt one only if the file does not have the right one as well.
std::string_view meant_by(std::string_view key, Fields& root) {
  std::vector<std::string_view> absent;
  for (const std::string_view asked : root.asked()) absent.push_back(asked);
  for (const JsonView member : root.json().members()) std::erase(absent, member.key());
  std::ranges::sort(absent);
  return nearest_name(key, absent);
}

bool has_long_rope(Fields& root) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const auto object = root.find(key);
    if (!object || object->kind() != JsonKind::Object) continue;
    for (const std::string_view type : {"rope_type", "type"})
      if (const auto name = object->find(type);
          name && (name->text() == "longrope" || name->text() == "su"))
        return true;
  }
  return false;
}

}  // namespace

bool has_mxfp4_weights(Fields& root) {
  const auto object = root.find("quantization_config");
  return root.text_or("model_type", "") == "gpt_oss" && object &&
         object->kind() == JsonKind::Object && object->text_or("quant_method", "") == "mxfp4";
}

void note_what_was_not_read(Fields& root, Model& model) {
  if (root.boolean_or("gradient_checkpointing", false))
    model.notes.emplace_back(
        "gradient_checkpointing is a request to the trainer: it is the strategy 'checkpoint'");
  if (has_long_rope(root))
    model.notes.emplace_back(
        "rope_scaling 'longrope' is planned as plain rotation: its factors change values, not "
        "bytes");
  if (has_mxfp4_weights(root))
    model.notes.emplace_back(
        "weights in MXFP4 are made whole for training (Mxfp4Config(dequantize=True)): planned so");
  const std::vector<std::string_view> asked = root.asked();
  constexpr std::size_t most = 20;
  std::vector<std::string> unread;
  std::size_t more = 0;
  for (const JsonView member : root.json().members()) {
    const std::string_view key = member.key();
    if (contains(asked, key) || std::ranges::binary_search(without_effect, key)) continue;
    if (unread.size() == most && ++more) continue;
    const std::string_view meant = meant_by(key, root);
    unread.emplace_back(quoted(key) +
                        (meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant)));
  }
  if (unread.empty()) return;
  model.notes.emplace_back(fmt::format("keys that were not read: {}{}", fmt::join(unread, ", "),
                                       more > 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace tidemark::config
