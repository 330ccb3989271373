#include "traces/models/model_config.h"

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
  Trace operator()(const LlamaConfig& config) const { return build_llama(name, config, options); }
};

}  // namespace

std::string_view family_of(const ModelConfig& config) {
  constexpr std::array<std::string_view, std::variant_size_v<ModelConfig>> names = {
      "vit", "swin", "mvit", "bert", "gpt2", "llama"};
  return names[config.index()];
}

Trace build_trace(const Model& model, const StepOptions& options) {
  return std::visit(Build{model.name, options}, model.config);
}

}  // namespace tidemark
