// Dispatches on the family: its name, the heads it knows, and the function that builds its trace.
#include "traces/models/model_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "traces/linear_names.h"
#include "traces/models/titan.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

struct Build {
  const std::string& name;
  const StepOptions& options;

  Trace operator()(const VitConfig& config) const { return build_vit(name, config, options); }
  Trace operator()(const SwinConfig& config) const { return build_swin(name, config, options); }
  Trace operator()(const MvitConfig& config) const { return build_mvit(name, config, options); }
  Trace operator()(const BertConfig& config) const { return build_bert(name, config, options); }
  Trace operator()(const Gpt2Config& config) const { return build_gpt2(name, config, options); }
  Trace operator()(const T5Config& config) const { return build_t5(name, config, options); }
  Trace operator()(const MegatronT5Config& config) const {
    return build_megatron_t5(name, config, options);
  }
  Trace operator()(const ModernBertConfig& config) const {
    return build_modernbert(name, config, options);
  }
  Trace operator()(const DebertaConfig& config) const {
    return build_deberta(name, config, options);
  }
  Trace operator()(const ClipConfig& config) const { return build_clip(name, config, options); }
  Trace operator()(const BartConfig& config) const { return build_bart(name, config, options); }
  Trace operator()(const BeitConfig& config) const { return build_beit(name, config, options); }
  Trace operator()(const VitMaeConfig& config) const {
    return build_vit_mae(name, config, options);
  }
  Trace operator()(const PvtConfig& config) const { return build_pvt(name, config, options); }
  Trace operator()(const DecoderConfig& config) const {
    return build_decoder(name, config, options);
  }
};

constexpr std::array encoder_heads = {Head::MaskedLanguage,
                                      Head::SequenceClassification,
                                      Head::TokenClassification,
                                      Head::QuestionAnswering,
                                      Head::None,
                                      Head::NextSentence,
                                      Head::Pretraining};
constexpr std::array decoder_heads = {Head::CausalLanguage, Head::SequenceClassification,
                                      Head::TokenClassification, Head::QuestionAnswering,
                                      Head::None};
constexpr std::array image_heads = {Head::ImageClassification, Head::None,
                                    Head::DistilledClassification};

// RoBERTa, DistilBERT and ELECTRA's generator are trained on masked words alone and have no class
// for pairs of sentences. Megatron-LM's BERT has the one head that its command line says.
struct HeadsOf {
  using List = std::span<const Head>;

  List operator()(const VitConfig& config) const {
    return List(image_heads).first(config.prefix_tokens == 2 ? 3 : 2);
  }
  List operator()(const SwinConfig&) const { return List(image_heads).first(2); }
  List operator()(const MvitConfig&) const { return List(image_heads).first(1); }
  List operator()(const BertConfig& config) const {
    if (config.megatron)
      return config.has_pooler ? List(encoder_heads).last(1) : List(encoder_heads).first(1);
    return List(encoder_heads).first(config.is_roberta() || !config.has_pooler ? 5 : 7);
  }
  List operator()(const Gpt2Config&) const { return decoder_heads; }
  List operator()(const T5Config&) const { return List(decoder_heads).first(1); }
  List operator()(const MegatronT5Config&) const { return List(decoder_heads).first(1); }
  List operator()(const ModernBertConfig&) const { return List(encoder_heads).first(5); }
  List operator()(const DebertaConfig&) const { return List(encoder_heads).first(5); }
  List operator()(const BeitConfig&) const { return List(image_heads).first(2); }
  List operator()(const VitMaeConfig&) const { return List(encoder_heads).last(1); }
  List operator()(const PvtConfig&) const { return List(image_heads).first(2); }
  List operator()(const ClipConfig&) const { return List(image_heads).subspan(1, 1); }
  List operator()(const BartConfig&) const { return List(decoder_heads).first(1); }
  List operator()(const DecoderConfig& config) const {
    return config.is_hybrid() ? List(decoder_heads).first(1) : decoder_heads;
  }
};

std::string no_such_head(const Model& model, Head asked, std::span<const Head> known) {
  std::string names;
  for (const Head head : known) names.append(names.empty() ? "" : ", ").append(to_string(head));
  return fmt::format("{} has no head {} (known for it: {})", printable(model.name, 200),
                     to_string(asked), names);
}

}  // namespace

std::string_view family_of(const ModelConfig& config) {
  if (const auto* decoder = std::get_if<DecoderConfig>(&config)) return decoder->family;
  if (const auto* bart = std::get_if<BartConfig>(&config)) return bart->family;
  if (const auto* clip = std::get_if<ClipConfig>(&config)) return clip->family;
  constexpr std::array<std::string_view, std::variant_size_v<ModelConfig> - 3> names = {
      "vit",        "swin",    "mvit", "bert",    "gpt2", "t5",
      "modernbert", "deberta", "beit", "vit-mae", "pvt",  "megatron-t5"};
  return names[config.index()];
}

bool sees_images(const ModelConfig& config) {
  if (const auto* clip = std::get_if<ClipConfig>(&config)) return clip->sees;
  return std::holds_alternative<VitConfig>(config) || std::holds_alternative<SwinConfig>(config) ||
         std::holds_alternative<MvitConfig>(config) || std::holds_alternative<BeitConfig>(config) ||
         std::holds_alternative<VitMaeConfig>(config) || std::holds_alternative<PvtConfig>(config);
}

bool writes_another(const ModelConfig& config) {
  return std::holds_alternative<T5Config>(config) || std::holds_alternative<BartConfig>(config) ||
         std::holds_alternative<MegatronT5Config>(config);
}

std::span<const Head> heads_of(const ModelConfig& config) { return std::visit(HeadsOf{}, config); }

Head head_of(const ModelConfig& config) {
  return std::visit([](const auto& of) { return of.head; }, config);
}

Model with_head(const Model& model, const StepOptions& options) {
  if (!options.head && !model.head_problem.empty()) throw InputError(model.head_problem);
  Model changed = model;
  if (!options.head) return changed;
  const std::span<const Head> known = heads_of(model.config);
  if (std::ranges::find(known, *options.head) == known.end())
    throw UsageError(no_such_head(model, *options.head, known));
  std::visit([&](auto& config) { config.head = *options.head; }, changed.config);
  changed.head_problem.clear();
  return changed;
}

StepOptions completed(const Model& model, StepOptions options) {
  if (!options.precision) options.precision = model.precision;
  if (has_adapters(options.tuning) && options.tuning.targets.empty())
    options.tuning.targets = usual_targets(model.family);
  return options;
}

Trace build_trace(const Model& model, const StepOptions& options) {
  if (const Framework& framework = find_framework(options.framework); framework.torchtitan)
    if (const std::string defect = titan_defect(model, options); !defect.empty())
      throw UsageError(fmt::format("--framework {}: {}", framework.name, defect));
  const StepOptions step = completed(model, options);
  return std::visit(Build{model.name, step}, with_head(model, step).config);
}

}  // namespace tidemark
