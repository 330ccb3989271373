// Picks the reader by the config's model type, and refuses keys that none of them models.
#include "traces/models/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/names.h"
#include "base/quoted.h"
#include "traces/models/config_fields.h"

namespace tidemark {
namespace config {

std::optional<JsonView> Fields::member(std::string_view key) {
  for (const JsonView value : asked(key).members())
    if (value.key() == key) return value;
  return {};
}

void fail_at(Fields& root, std::string_view key, std::string_view problem) {
  if (const auto value = root.member(key)) value->fail(problem);
  root.json().fail(problem);
}

namespace {

// Sizes that a class computes with as they are: null is no default of theirs. (Of those that it
// makes of others, as a number of key heads, it is.)
constexpr std::array<std::string_view, 26> never_null = {"hidden_size",
                                                         "num_hidden_layers",
                                                         "num_attention_heads",
                                                         "intermediate_size",
                                                         "vocab_size",
                                                         "d_model",
                                                         "num_layers",
                                                         "num_heads",
                                                         "d_kv",
                                                         "d_ff",
                                                         "n_embd",
                                                         "n_layer",
                                                         "n_head",
                                                         "dim",
                                                         "n_layers",
                                                         "n_heads",
                                                         "hidden_dim",
                                                         "embed_dim",
                                                         "image_size",
                                                         "patch_size",
                                                         "num_channels",
                                                         "encoder_layers",
                                                         "decoder_layers",
                                                         "encoder_ffn_dim",
                                                         "decoder_ffn_dim",
                                                         "ffn_dim"};

}  // namespace

std::int64_t count(Fields& root, std::string_view key, std::int64_t fallback, std::int64_t most) {
  if (const auto value = root.member(key); value && value->kind() == JsonKind::Null &&
                                           std::ranges::find(never_null, key) != never_null.end())
    value->fail("found null; need a whole number");
  return root.integer_or(key, fallback, 1, most);
}

double probability(Fields& root, std::string_view key, double fallback) {
  return root.number_or(key, fallback, 0, 1);
}

std::optional<double> optional_probability(Fields& root,
                                           std::initializer_list<std::string_view> keys) {
  std::optional<double> found;
  for (const std::string_view key : keys)
    if (const auto value = root.find(key); value && !found) found = value->number(0, 1);
  return found;
}

double epsilon(Fields& root, std::string_view key, double fallback) {
  return root.number_or(key, fallback, 0, 1);
}

std::string_view one_of(Fields& root, std::string_view key,
                        std::initializer_list<std::string_view> known) {
  const std::string_view name = root.text_or(key, *known.begin());
  if (std::ranges::find(known, name) != known.end()) return name;
  fail_at(root, key,
          fmt::format("{} is not modelled (known: {})", quoted(name), fmt::join(known, ", ")));
}

namespace {

constexpr std::array activations = {
    Named{ActivationForm::Gelu, std::string_view("gelu")},
    Named{ActivationForm::GeluTanh, std::string_view("gelu_pytorch_tanh")},
    Named{ActivationForm::GeluComposed, std::string_view("gelu_new")},
    Named{ActivationForm::QuickGelu, std::string_view("quick_gelu")},
    Named{ActivationForm::Silu, std::string_view("silu")},
    Named{ActivationForm::Silu, std::string_view("swish")},
    Named{ActivationForm::Relu, std::string_view("relu")},
    Named{ActivationForm::SquaredRelu, std::string_view("relu2")}};

}  // namespace

std::optional<ActivationForm> find_activation(std::string_view name) {
  for (const auto& [form, known] : activations)
    if (known == name) return form;
  return std::nullopt;
}

std::string known_activations() {
  return fmt::format("{}", fmt::join(names_of(activations), ", "));
}

ActivationForm activation_form(Fields& root, std::string_view key, ActivationForm fallback) {
  if (!root.find(key)) return fallback;
  const std::string_view name = root.text_or(key, "");
  if (const auto form = find_activation(name)) return *form;
  fail_at(root, key,
          fmt::format("activation {} is not modelled ({}known: {})", quoted(name),
                      guess_of(name, names_of(activations)), known_activations()));
}

void require_divides(Fields& root, std::string_view key, std::int64_t parts,
                     std::string_view whole_key, std::int64_t whole) {
  if (whole % parts == 0) return;
  fail_at(root, key,
          fmt::format("{} = {} does not divide {} = {}; use a divisor of it", key, parts, whole_key,
                      whole));
}

void refuse(Fields& root, std::string_view key, std::string_view why) {
  const auto value = root.find(key);
  if (!value) return;
  if (value->kind() == JsonKind::Boolean && !value->boolean()) return;
  if (value->kind() == JsonKind::Integer && value->integer(INT64_MIN, INT64_MAX) == 0) return;
  value->fail(fmt::format("'{}' is not modelled: {}", key, why));
}

std::int64_t classes(Fields& root) {
  const std::int64_t unnamed = count(root, "num_labels", 0, most_words);
  const auto names = root.find("id2label");
  if (!names) return unnamed ? unnamed : 2;  // the default of PretrainedConfig
  const auto named = static_cast<std::int64_t>(names->members().size());
  if (named == 0) names->fail("no labels; name at least one class, or give num_labels");
  if (unnamed != 0 && unnamed != named)
    fail_at(root, "num_labels",
            fmt::format("num_labels = {} but id2label names {} classes; remove one of the two",
                        unnamed, named));
  return named;
}

namespace {

struct Reader {
  std::string_view model_type;
  std::string_view class_prefix;  ///< "Bert" of BertForMaskedLM
  ModelConfig (*read)(Fields& root);
};

constexpr std::array readers = {
    Reader{"vit", "ViT", read_vit},
    Reader{"deit", "DeiT", read_deit},
    Reader{"dinov2", "Dinov2", read_dinov2},
    Reader{"beit", "Beit", read_beit},
    Reader{"vit_mae", "ViTMAE", read_vit_mae},
    Reader{"pvt", "Pvt", read_pvt},
    Reader{"pvt_v2", "PvtV2", read_pvt_v2},
    Reader{"swin", "Swin", read_swin},
    Reader{"mvit", "MViT", read_mvit},
    Reader{"bert", "Bert", read_bert},
    Reader{"roberta", "Roberta", read_roberta},
    Reader{"xlm-roberta", "XLMRoberta", read_roberta_kin},
    Reader{"camembert", "Camembert", read_roberta_kin},
    Reader{"distilbert", "DistilBert", read_distilbert},
    Reader{"electra", "Electra", read_electra},
    Reader{"gpt2", "GPT2", read_gpt2},
    Reader{"megatron-gpt", "MegatronGPT", read_megatron_gpt},
    Reader{"megatron-hybrid", "MegatronHybrid", read_megatron_hybrid},
    Reader{"megatron-core-bert", "MegatronCoreBert", read_megatron_bert},
    Reader{"megatron-t5", "MegatronT5", read_megatron_t5},
    Reader{"llama", "Llama", read_llama},
    Reader{"mistral", "Mistral", read_mistral},
    Reader{"qwen2", "Qwen2", read_qwen2},
    Reader{"qwen3", "Qwen3", read_qwen3},
    Reader{"gemma", "Gemma", read_gemma},
    Reader{"gemma2", "Gemma2", read_gemma2},
    Reader{"gemma3_text", "Gemma3", read_gemma3_text},
    Reader{"phi", "Phi", read_phi},
    Reader{"phi3", "Phi3", read_phi3},
    Reader{"gpt_neox", "GPTNeoX", read_gpt_neox},
    Reader{"opt", "OPT", read_opt},
    Reader{"stablelm", "StableLm", read_stablelm},
    Reader{"olmo2", "Olmo2", read_olmo2},
    Reader{"olmo3", "Olmo3", read_olmo3},
    Reader{"granite", "Granite", read_granite},
    Reader{"smollm3", "SmolLM3", read_smollm3},
    Reader{"seed_oss", "SeedOss", read_seed_oss},
    Reader{"exaone4", "Exaone4", read_exaone4},
    Reader{"hunyuan_v1_dense", "HunYuanDenseV1", read_hunyuan},
    Reader{"arcee", "Arcee", read_arcee},
    Reader{"glm4", "Glm4", read_glm4},
    Reader{"ernie4_5", "Ernie4_5", read_ernie},
    Reader{"cohere", "Cohere", read_cohere},
    Reader{"cohere2", "Cohere2", read_cohere2},
    Reader{"starcoder2", "Starcoder2", read_starcoder2},
    Reader{"mixtral", "Mixtral", read_mixtral},
    Reader{"qwen2_moe", "Qwen2Moe", read_qwen2_moe},
    Reader{"qwen3_moe", "Qwen3Moe", read_qwen3_moe},
    Reader{"olmoe", "Olmoe", read_olmoe},
    Reader{"gpt_oss", "GptOss", read_gpt_oss},
    Reader{"t5", "T5", read_t5},
    Reader{"bart", "Bart", read_bart},
    Reader{"whisper", "Whisper", read_whisper},
    Reader{"falcon", "Falcon", read_falcon},
    Reader{"modernbert", "ModernBert", read_modernbert},
    Reader{"deberta-v2", "DebertaV2", read_deberta},
    Reader{"deepseek_v2", "DeepseekV2", read_deepseek_v2},
    Reader{"deepseek_v3", "DeepseekV3", read_deepseek_v3},
    Reader{"kimi_k2", "DeepseekV3", read_deepseek_v3},
    Reader{"glm4_moe", "Glm4Moe", read_glm4_moe},
    Reader{"nemotron_h", "NemotronH", read_nemotron_h},
    Reader{"clip_text_model", "CLIPText", read_clip_text},
    Reader{"clip_vision_model", "CLIPVision", read_clip_vision},
    Reader{"siglip_text_model", "SiglipText", read_siglip_text},
    Reader{"siglip_vision_model", "SiglipVision", read_siglip_vision},
};

const Reader* find_reader(std::string_view type) {
  const auto* row = std::ranges::find(readers, type, &Reader::model_type);
  return row != readers.end() ? row : nullptr;
}

struct Inner {
  JsonView object;  ///< whose key is "text_config"
  const Reader* reader;
};

// The known models in a file of several.
std::vector<Inner> models_inside(const JsonView& root) {
  std::vector<Inner> inside;
  for (const JsonView member : root.members()) {
    if (member.kind() != JsonKind::Object) continue;
    const auto type = member.find("model_type");
    if (!type || type->kind() != JsonKind::Text) continue;
    if (const Reader* reader = find_reader(type->text())) inside.push_back({member, reader});
  }
  return inside;
}

[[noreturn]] void refuse_type(const JsonView& type, const std::vector<Inner>& inside,
                              std::string_view file) {
  if (inside.empty()) {
    std::vector<std::string_view> known;
    for (const Reader& reader : readers) known.push_back(reader.model_type);
    type.fail(fmt::format("{}; tidemark capture {} takes any that the installed transformers has",
                          unknown_name("model_type", printable(type.text()), known),
                          printable(file)));
  }
  std::vector<std::string> parts;
  for (const Inner& each : inside)
    parts.push_back(fmt::format("{} ({})", each.object.key(), each.reader->model_type));
  type.fail(fmt::format(
      "model_type {} is several models, which are planned one by one: {}; cut one out: jq .{} {} > "
      "{}.json",
      quoted(type.text()), fmt::join(parts, ", "), inside.front().object.key(), printable(file),
      inside.front().object.key()));
}

void refuse_what_no_reader_models(Fields& root) {
  if (!has_mxfp4_weights(root))
    refuse(root, "quantization_config", "weights in few bits; remove it to plan for whole ones");
  for (const std::string_view key : {"num_local_experts", "num_experts"})
    if (std::ranges::find(root.asked(), key) == root.asked().end())
      refuse(root, key, "a mixture of experts in this family; give a dense model");
}

Model read(const Reader& reader, Fields& fields, std::string_view file) {
  Model model{.name = std::string(file),
              .family = "",
              .title = std::string(file),
              .source = std::string(file),
              .config = reader.read(fields)};
  refuse_what_no_reader_models(fields);
  model.family = family_of(model.config);
  read_head(fields, reader.class_prefix, model);
  read_precision(fields, model);
  note_what_was_not_read(fields, model);
  return model;
}

// The decoder of a model that also sees or hears. Nothing for towers, which are trained together.
std::optional<Model> read_language_model(const Inner& inner, Fields& whole, std::string_view file) {
  Fields fields(inner.object);
  Model model = read(*inner.reader, fields, file);
  if (inner.object.key() != "text_config" || !std::holds_alternative<DecoderConfig>(model.config))
    return {};
  if (!model.precision) read_precision(whole, model);
  model.notes.push_back(
      fmt::format("only the language model of this {} is planned ({}): its other parts come on top",
                  quoted(whole.text_or("model_type", "")), inner.object.key()));
  return model;
}

}  // namespace
}  // namespace config

Model read_model_config(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  config::Fields fields(document.root());
  const auto stated = fields.find("model_type");
  if (!stated) config::refuse_other_file(document.root());
  const JsonView type = stated ? *stated : document.root().at("model_type");
  if (const config::Reader* reader = config::find_reader(type.text()))
    return config::read(*reader, fields, file);
  const std::vector<config::Inner> inside = config::models_inside(document.root());
  for (const config::Inner& inner : inside)
    if (auto model = config::read_language_model(inner, fields, file)) return std::move(*model);
  config::refuse_type(type, inside, file);
}

}  // namespace tidemark
