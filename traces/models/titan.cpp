// What differs from transformers' LLaMA, op by op.
#include "traces/models/titan.h"

#include <array>

#include "traces/models/model_config.h"

namespace tidemark {

// How fast pairs turn is free, too.
bool is_titans_llama(const DecoderConfig& config) {
  const DecoderConfig plain{.width = config.width,
                            .depth = config.depth,
                            .heads = config.heads,
                            .mlp = config.mlp,
                            .key_heads = config.key_heads,
                            .head_width = config.head_width,
                            .vocabulary = config.vocabulary,
                            .positions = config.positions,
                            .epsilon = config.epsilon,
                            .rotary = config.rotary,
                            .labels = config.labels,
                            .classifier_dropout = config.classifier_dropout};
  return config == plain && config.head_width * config.heads == config.width;
}

std::string titan_defect(const Model& model, const StepOptions& step) {
  const auto* config = std::get_if<DecoderConfig>(&model.config);
  if (config == nullptr || !is_titans_llama(*config))
    return "its code is known of LLaMA 3 alone, without biases, windows, experts or a head that "
           "shares its table (leave --framework out)";
  if (step.head && *step.head != Head::CausalLanguage)
    return "its LLaMA scores the next word (leave --head out)";
  if (step.tuning.kind != Tuning::Kind::Full)
    return "it trains all parameters (leave --tuning out)";
  if (step.attention == Attention::Math)
    return "its attention is PyTorch's scaled_dot_product_attention (leave --attention out)";
  if (step.dropout.value_or(0) > 0) return "its LLaMA drops nothing (leave --dropout out)";
  if (step.padded) return "its batches have no padding (leave --padded out)";
  if (step.liger) return "Liger's kernels are not known in its LLaMA (leave --liger out)";
  if (step.loss) return "its loss is cross-entropy of all logits (leave --loss out)";
  return {};
}

TensorId turn_pairs(TraceBuilder& b, const std::string& name, TensorId x, TensorId waves) {
  const OutputSpec product{"", b.shape(x), DType::Float32};
  return b.opaque(name, std::array{x, waves}, std::span(&product, 1),
                  {.operation = "aten::mul",
                   .gradients = 1,
                   .saved = input_bit(1),
                   .computes = Formula::TurnPairs});
}

namespace {

// apply_rotary_emb(), whose variables are fp32.
Heads turned(TraceBuilder& b, const std::string& name, const Heads& x, TensorId waves) {
  b.begin_function();
  const TensorId q = b.local(b.cast(name + ".q.float", x.q, DType::Float32));
  const TensorId k = b.local(b.cast(name + ".k.float", x.k, DType::Float32));
  const TensorId q_turned = b.local(turn_pairs(b, name + ".q_rope", q, waves));
  const TensorId k_turned = b.local(turn_pairs(b, name + ".k_rope", k, waves));
  const Heads heads{b.cast(name + ".q.round", q_turned, b[x.q].dtype),
                    b.cast(name + ".k.round", k_turned, b[x.k].dtype), x.v};
  b.end_function();
  return heads;
}

}  // namespace

// What is repeated has its name until both are.
Heads titan_heads(TraceBuilder& b, const std::string& name, const Heads& projected,
                  TensorId waves) {
  Heads heads = turned(b, name, projected, waves);
  const Shape all = b.shape(heads.q);
  if (b.shape(heads.k) == all) return heads;
  b.begin_function();
  b.local(heads.k), b.local(heads.v);
  heads.k = b.repeat_heads(name + ".k.repeat", heads.k, all);
  heads.v = b.repeat_heads(name + ".v.repeat", heads.v, all);
  b.end_function();
  return heads;
}

}  // namespace tidemark
