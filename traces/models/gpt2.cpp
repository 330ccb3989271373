// GPT-2 as in modeling_gpt2.py of Hugging Face transformers, eager: pre-norm, packed c_attn (a
// Conv1D is a linear whose weight is stored transposed), learned positions.
#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

TensorId mlp(TraceBuilder& b, const std::string& name, TensorId x, const Gpt2Config& config) {
  TensorId y = b.linear(name + ".fc1", x, config.mlp);
  y = activation(b, name, y, config.activation);
  y = b.linear(name + ".fc2", y, config.width);
  return b.dropout(name + ".drop", y, b.dropout_probability(config.residual_dropout));
}

TensorId block(TraceBuilder& b, const std::string& name, TensorId x, const Gpt2Config& config,
               const AttentionConfig& attention) {
  // Who may see whom, which fused attention has no use for; transformers 5 has it no more.
  if (b.framework().mask_buffers)
    b.buffer(name + ".attn.bias", {1, 1, config.positions, config.positions}, DType::Bool);
  b.begin_block(name, x, 0);
  b.begin_function();  // GPT2Block has names for what its attention gives and what its MLP reads
  b.part(Part::F);
  TensorId y = b.layer_norm(name + ".norm1", x, config.epsilon);
  y = self_attention(b, name + ".attn", y, attention);
  y = b.dropout(name + ".drop", y, b.dropout_probability(config.residual_dropout));
  x = b.residual(name + ".add1", x, b.local(y));
  b.part(Part::G);
  y = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = mlp(b, name + ".mlp", b.local(y), config);
  x = b.residual(name + ".add2", x, y);
  b.end_function();
  b.end_block();
  return x;
}

TensorId embed(TraceBuilder& b, TensorId table, std::int64_t tokens, const Gpt2Config& config) {
  const TensorId ids =
      b.input("input_ids", {sequences_of(b.step()), tokens}, DType::Int64, fill::Words{});
  const Tuning& tuning = b.step().tuning;
  const TensorId places = b.input("position_ids", {1, tokens + prompt_tokens(tuning)}, DType::Int64,
                                  fill::Positions{prefix_tokens(tuning)});
  const TensorId positions = b.parameter("position_embed.weight", {config.positions, config.width});
  const TensorId words = b.local(b.with_prompt(b.embedding("embed", ids, table)));
  const TensorId x =
      b.add("pos_add", words, b.local(b.embedding("position_embed", places, positions)));
  return b.dropout("drop", x, b.dropout_probability(config.embedding_dropout));
}

HiddenWords hidden_words(TraceBuilder& b, const Gpt2Config& config, std::int64_t tokens) {
  const Tuning& tuning = b.step().tuning;
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
  // torch.where() with the mask keeps the dtype of the scores.
  AttentionConfig attention{.heads = config.heads,
                            .head_width = config.width / config.heads,
                            .scales_query = false,
                            .causal = true,
                            .probabilities_as_query = true,
                            .dropout = b.dropout_probability(config.attention_dropout),
                            .returns_weights = true,
                            .by_shared_code = true,
                            .masks_each_sample = b.framework().shared_masks,
                            .converts_mask = true};
  const std::int64_t all = tokens + prompt_tokens(tuning);
  b.begin_function();  // GPT2Model names its mask and what it looks up, until it returns
  settle_attention(b, attention, "attention_mask", {1, 1, all, all + prefix_tokens(tuning)},
                   b.compute_dtype(), fill::CausalMask{});
  const std::vector<Prefix> prefixes =
      b.prefixes(config.depth, attention.heads, attention.head_width);
  TensorId x = embed(b, table, tokens, config);
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    attention.prefix = prefixes[i];
    x = block(b, "blocks." + std::to_string(i), x, config, attention);
  }
  x = b.layer_norm("norm", x, config.epsilon);
  b.end_function();
  return {b.local(x), table};
}

}  // namespace

Trace build_gpt2(const std::string& model, const Gpt2Config& config, const StepOptions& options) {
  TraceBuilder b(model, "gpt2", options);
  const std::int64_t tokens = sequence_length(options, config.positions, true);
  const double dropout = b.dropout_probability(config.classifier_dropout.value_or(0.1));
  // Whose name for all outputs lasts until the loss is there; that of pairs is not the model's own.
  const bool names = !scores_pairs(options);
  if (names) b.begin_function();
  const TensorId loss = decoder_loss(b, [&] { return hidden_words(b, config, tokens); },
                                     {.head = config.head,
                                      .is_tied = config.tied_head,
                                      .vocabulary = config.vocabulary,
                                      .token = {.labels = config.labels, .dropout = dropout}});
  if (names) b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
