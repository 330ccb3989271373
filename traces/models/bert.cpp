// BERT, RoBERTa, DistilBERT and ELECTRA with their heads, as in modeling_bert.py,
// modeling_roberta.py, modeling_distilbert.py and modeling_electra.py of Hugging Face transformers,
// eager. Post-norm: each half ends in LayerNorm(branch + shortcut), so the norm reads what the
// residual add wrote. Megatron-LM's BERT (core/models/bert) is pre-norm: its blocks are its GPT's.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

// BertLayer names what goes from one half of the MLP to the other; DistilBERT's FFN does not.
TensorId mlp(TraceBuilder& b, const std::string& name, TensorId x, const BertConfig& config) {
  TensorId y = b.linear(name + ".fc1", x, config.mlp);
  y = activation(b, name, y, config.activation);
  return b.linear(name + ".fc2", config.distilled ? y : b.local(y), config.width);
}

// What comes out of a branch has a name until its sum with the shortcut is normalized.
TensorId normalized_sum(TraceBuilder& b, const std::string& name, const char* which,
                        TensorId shortcut, TensorId branch, double epsilon) {
  const TensorId sum = b.residual(fmt::format("{}.add{}", name, which), shortcut, b.local(branch));
  return b.layer_norm(fmt::format("{}.norm{}", name, which), sum, epsilon);
}

TensorId block(TraceBuilder& b, const std::string& name, TensorId x, const BertConfig& config,
               const AttentionConfig& attention) {
  const double dropout = b.dropout_probability(config.dropout);
  b.begin_block(name, x, 0);
  b.begin_function();  // which names what its attention returns, and what the MLP reads
  b.part(Part::F);
  TensorId y = self_attention(b, name + ".attn", x, attention);
  if (config.drops_attention_output) y = b.dropout(name + ".drop1", y, dropout);
  b.begin_function();
  x = normalized_sum(b, name, "1", x, y, config.epsilon);
  b.end_function();
  b.local(x);
  b.part(Part::G);
  b.begin_function();
  y = mlp(b, name + ".mlp", x, config);
  y = b.dropout(name + ".drop2", y, dropout);
  x = normalized_sum(b, name, "2", x, y, config.epsilon);
  b.end_function();
  b.end_function();
  b.end_block();
  return x;
}

TensorId pre_norm_block(TraceBuilder& b, const std::string& name, TensorId x,
                        const BertConfig& config, const AttentionConfig& attention) {
  const double dropout = b.dropout_probability(config.dropout);
  b.begin_block(name, x, 0);
  b.begin_function();
  b.part(Part::F);
  TensorId y = b.layer_norm(name + ".norm1", x, config.epsilon);
  y = b.dropout(name + ".drop1", self_attention(b, name + ".attn", y, attention), dropout);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  y = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = b.dropout(name + ".drop2", mlp(b, name + ".mlp", y, config), dropout);
  x = b.residual(name + ".add2", x, y);
  b.end_function();
  b.end_block();
  return x;
}

// BERT's positions are the same for every sample; RoBERTa counts the tokens that are not padding,
// so it looks them up per sample.
TensorId embed(TraceBuilder& b, TensorId table, std::int64_t tokens, const BertConfig& config) {
  const std::int64_t batch = b.step().batch, rows = config.first_position > 0 ? batch : 1;
  const TensorId ids = b.input("input_ids", {batch, tokens}, DType::Int64, fill::Words{});
  const bool has_types = config.token_types > 0;
  const TensorId types =
      has_types ? b.input("token_type_ids", {batch, tokens}, DType::Int64) : no_tensor;
  const TensorId places =
      b.input("position_ids", {rows, tokens}, DType::Int64, fill::Positions{config.first_position});
  const std::int64_t width = b.shape(table).back();
  const TensorId type_table =
      has_types ? b.parameter("type_embed.weight", {config.token_types, width}) : no_tensor;
  const TensorId position_table = b.parameter("position_embed.weight", {config.positions, width});
  TensorId x = b.embedding("embed", ids, table);
  if (has_types) x = b.add("type_add", x, b.embedding("type_embed", types, type_table));
  x = b.add("pos_add", x, b.embedding("position_embed", places, position_table));
  if (!config.megatron) x = b.layer_norm("embed_norm", x, config.epsilon);
  x = b.dropout("drop", x, b.dropout_probability(config.dropout));
  return width == config.width ? x : b.linear("embed_project", x, config.width);
}

// Every token is scored; the loss ignores those whose label is −100.
TensorId masked_language_loss(TraceBuilder& b, const std::string& name, TensorId x, TensorId table,
                              const BertConfig& config) {
  const std::int64_t rows = b.shape(x)[0] * b.shape(x)[1];
  const TensorId labels =
      b.input("labels", {b.shape(x)[0], b.shape(x)[1]}, DType::Int64, fill::Words{});
  // No target "dense" of adapters means DistilBERT's.
  TensorId y =
      b.linear(config.distilled ? "vocab_transform" : "transform.dense", x, b.shape(table).back());
  const bool has_own = config.is_roberta() || config.electra;  // whatever the blocks have
  y = activation(b, "transform", y, has_own ? ActivationForm::Gelu : config.activation);
  y = b.layer_norm("transform.norm", y, config.epsilon);
  const TensorId bias = b.parameter("lm_head.bias", {config.vocabulary});
  const TensorId tied = config.tied_head ? table : no_tensor;
  y = vocabulary_head(b, "lm_head", y, tied, config.vocabulary, bias);
  y = b.view("logits.rows", y, {rows, config.vocabulary});
  return b.cross_entropy(name, y, b.view("labels.rows", labels, {rows}));
}

TensorId first_token(TraceBuilder& b, TensorId x) {
  return b.select("first_token", x, {b.shape(x)[0], b.shape(x)[2]});
}

TensorId pooled(TraceBuilder& b, TensorId x, const BertConfig& config) {
  return b.tanh("pooler.tanh", b.linear("pooler.dense", first_token(b, x), config.width));
}

TensorId next_sentence_loss(TraceBuilder& b, const std::string& name, TensorId pooled) {
  const TensorId logits = head_linear(b, "seq_relationship", pooled, 2);
  const TensorId labels = b.input("next_sentence_label", {b.shape(pooled)[0]}, DType::Int64);
  return b.cross_entropy(name, logits, labels);
}

// BERT classifies what its pooler makes; RoBERTa's head has the pooler's layers, and a dropout
// before them, too; ELECTRA's the same with GELU; DistilBERT's has a layer of its own, with a ReLU.
TensorId sequence_loss(TraceBuilder& b, TensorId x, double dropout, const BertConfig& config) {
  TensorId y = no_tensor;
  if (config.is_roberta() || config.electra) {
    y = b.dropout("classifier.drop1", first_token(b, x), dropout);
    y = head_linear(b, "classifier.dense", y, config.width);
    y = config.electra ? b.gelu("classifier.gelu", y) : b.tanh("classifier.tanh", y);
  } else if (!config.has_pooler) {
    y = head_linear(b, "pre_classifier", first_token(b, x), config.width);
    y = b.relu("pre_classifier.relu", y);
  } else {
    y = pooled(b, x, config);
  }
  y = b.dropout("classifier.drop", y, dropout);
  return classification_loss(b, head_linear(b, "classifier", y, config.labels));
}

TensorId pretraining_loss(TraceBuilder& b, TensorId x, TensorId table, const BertConfig& config) {
  const TensorId words = masked_language_loss(b, "loss.words", x, table, config);
  return b.add("loss", words, next_sentence_loss(b, "loss.sentences", pooled(b, x, config)));
}

TensorId loss_of(TraceBuilder& b, TensorId x, TensorId table, const BertConfig& config) {
  const double dropout = b.dropout_probability(config.classifier_dropout.value_or(config.dropout));
  switch (config.head) {
    case Head::MaskedLanguage:
      return masked_language_loss(b, "loss", x, table, config);
    case Head::Pretraining:
      return pretraining_loss(b, x, table, config);
    case Head::NextSentence:
      return next_sentence_loss(b, "loss", pooled(b, x, config));
    case Head::SequenceClassification:
      return sequence_loss(b, x, dropout, config);
    case Head::TokenClassification:
      return token_loss(
          b, x,
          {.labels = config.labels,
           .dropout = config.has_pooler || config.electra ? dropout
                                                          : b.dropout_probability(config.dropout)});
    case Head::QuestionAnswering:
      return question_answering_loss(
          b, b.dropout("qa_drop", x, b.dropout_probability(config.answer_dropout)));
    case Head::None:
      return config.has_pooler ? mean_loss(b, std::array{x, pooled(b, x, config)})
                               : mean_loss(b, std::array{x});
    case Head::CausalLanguage:
    case Head::ImageClassification:
    case Head::DistilledClassification:
      break;
  }
  CHECK(false && "a head that heads_of() does not name");
  return no_tensor;
}

AttentionConfig attention_of(TraceBuilder& b, const BertConfig& config, std::int64_t tokens) {
  AttentionConfig attention{
      .heads = config.heads,
      .head_width = config.width / config.heads,
      .packed = config.megatron,
      .unpacking = Unpacking::Slices,
      .scales_query = config.scales_query,
      .dropout = b.dropout_probability(config.attention_dropout),
      // transformers' shared code has one name for all
      .names_scores = !b.framework().shared_attention && !config.megatron,
      .names_products = config.megatron,
      .returns_weights = !config.distilled,  // DistilBERT's drops them
      .block_returns_weights = !config.distilled && b.framework().returns_weights,
      .calls_sdpa = !config.electra || b.framework().shared_attention,
      .out_name = config.megatron ? "o" : "dense"};
  // DistilBERT's own code always fills scores, in their dtype, where a key is padding.
  const bool fills_scores = config.distilled && !b.framework().drops_idle_masks;
  settle_attention(b, attention, "attention_mask", {b.step().batch, 1, 1, tokens},
                   fills_scores ? b.compute_dtype() : b.base_dtype(), fill::PaddingMask{});
  attention.clears_padding =
      config.megatron && b.framework().clears_padding && attention.mask != no_tensor;
  return attention;
}

}  // namespace

Trace build_bert(const std::string& model, const BertConfig& config, const StepOptions& options) {
  TraceBuilder b(model, "bert", options);
  const std::int64_t tokens =
      sequence_length(options, config.positions - config.first_position, true);
  const std::int64_t of_table = config.embedding_width ? config.embedding_width : config.width;
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, of_table});
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  b.begin_function();  // BertModel names its mask and what its encoder begins with
  const AttentionConfig attention = attention_of(b, config, tokens);
  TensorId x = b.local(embed(b, table, tokens, config));
  b.expect_blocks(config.depth);
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const std::string name = "blocks." + std::to_string(i);
    x = config.megatron ? pre_norm_block(b, name, x, config, attention)
                        : block(b, name, x, config, attention);
  }
  if (config.megatron) x = b.layer_norm("norm", x, config.epsilon);
  b.end_function();
  const TensorId loss = loss_of(b, b.local(x), table, config);
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
