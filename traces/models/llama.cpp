// LLaMA, Mistral, Qwen2 and Qwen3 as in modeling_llama.py (and its copies) of Hugging Face
// transformers, eager:
//   embed ─ { norm ─ q,k,v ─ rope ─ attention ─ o ─ add ─ norm ─ gate,up ─ silu·up ─ down ─ add } ─
//   norm ─ head ─ loss
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

TensorId gated_mlp(TraceBuilder& b, const std::string& name, TensorId x,
                   const LlamaConfig& config) {
  TensorId gate = b.linear(name + ".gate", x, config.mlp, config.mlp_bias);
  gate = b.silu(name + ".silu", gate);
  const TensorId up = b.linear(name + ".up", x, config.mlp, config.mlp_bias);
  const TensorId product = b.mul(name + ".product", gate, up);
  return b.linear(name + ".down", product, config.width, config.mlp_bias);
}

TensorId block(TraceBuilder& b, const std::string& name, TensorId x, const LlamaConfig& config,
               const AttentionConfig& attention) {
  b.begin_block(name, x, 0);
  b.part(Part::F);
  TensorId y = b.rms_norm(name + ".input_norm", x, config.epsilon);
  y = self_attention(b, name + ".attn", y, attention);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  y = b.rms_norm(name + ".post_norm", x, config.epsilon);
  y = gated_mlp(b, name + ".mlp", y, config);
  x = b.residual(name + ".add2", x, y);
  b.end_block();
  return x;
}

// The tables and the mask have the dtype of the residual stream, so autocast's 16-bit q and k come
// out of the rotation in fp32.
AttentionConfig attention_of(TraceBuilder& b, const LlamaConfig& config, std::int64_t tokens) {
  const Shape table = {tokens, config.head_width};
  const DType stream = b.framework().autocast_casts ? b.base_dtype() : b.compute_dtype();
  AttentionConfig attention{.heads = config.heads,
                            .key_heads = config.key_heads,
                            .head_width = config.head_width,
                            .packed = false,
                            .scales_query = false,
                            .causal = true,
                            .qkv_bias = config.qkv_bias,
                            .out_bias = config.out_bias,
                            .softmax_in_fp32 = true,
                            .probabilities_as_query = true,
                            .dropout = b.dropout_probability(config.attention_dropout)};
  attention.mask =
      score_mask(b, {1, 1, tokens, tokens}, stream, fill::CausalMask{config.sliding_window});
  attention.cosine =
      b.input("rope.cos", table, stream, fill::RotaryTable{fill::Wave::Cosine, config.rotary});
  attention.sine =
      b.input("rope.sin", table, stream, fill::RotaryTable{fill::Wave::Sine, config.rotary});
  attention.head_norm_epsilon = config.head_norm ? config.epsilon : 0;
  attention.window = config.sliding_window;
  attention.out_name = "o";
  return attention;
}

}  // namespace

Trace build_llama(const std::string& model, const LlamaConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "llama", options);
  const std::int64_t tokens = sequence_length(options, config.positions, false);
  const TensorId ids = b.input("input_ids", {options.batch, tokens}, DType::Int64, fill::Words{});
  const AttentionConfig attention = attention_of(b, config, tokens);

  const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
  TensorId x = b.embedding("embed", ids, table);
  for (std::int64_t i = 0; i < config.depth; ++i)
    x = block(b, "blocks." + std::to_string(i), x, config, attention);
  x = b.rms_norm("norm", x, config.epsilon);
  const double dropout = b.dropout_probability(config.classifier_dropout.value_or(0.1));
  return b.finish(decoder_loss(
      b, x,
      {.head = config.head,
       .tied_table = config.tied_head ? table : no_tensor,
       .vocabulary = config.vocabulary,
       .token = {
           .labels = config.labels, .dropout = dropout, .loss_in_fp32 = true, .name = "score"}}));
}

}  // namespace tidemark
