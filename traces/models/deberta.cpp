// DeBERTa-v2 and -v3 as in modeling_deberta_v2.py of Hugging Face transformers, eager, which has no
// other attention: post-norm like BERT.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/disentangled_attention.h"
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

struct DebertaBlock {
  TraceBuilder& b;
  const DebertaConfig& config;
  const DebertaShared& shared;
  std::string name;

  // What is added to the shortcut has a name until the norm has run.
  TensorId half(const std::string& which, TensorId shortcut, TensorId y) const {
    b.begin_function();
    y = b.linear(name + which + ".dense", y, config.width);
    y = b.local(b.dropout(name + which + ".drop", y, b.dropout_probability(config.dropout)));
    y = b.residual(name + which + ".add", shortcut, y);
    y = b.layer_norm(name + which + ".norm", y, config.epsilon);
    b.end_function();
    return y;
  }

  // The block names what goes from one half to the other, and within the second.
  TensorId operator()(TensorId x) const {
    b.begin_block(name, x, 0);
    b.begin_function();
    b.part(Part::F);
    x = b.local(half(".attn", x, disentangled_attention(b, name + ".attn", x, config, shared)));
    b.part(Part::G);
    const TensorId y =
        activation(b, name, b.linear(name + ".fc1", x, config.mlp), config.activation);
    x = half(".mlp", x, b.local(y));
    b.end_function();
    b.end_block();
    return x;
  }
};

TensorId embed(TraceBuilder& b, TensorId table, std::int64_t tokens, const DebertaConfig& config) {
  const Shape of_ids = {b.step().batch, tokens};
  const std::int64_t width = b.shape(table).back();
  const TensorId ids = b.input("input_ids", of_ids, DType::Int64, fill::Words{});
  TensorId x = b.embedding("embed", ids, table);
  if (config.absolute_places) {
    const TensorId places = b.input("position_ids", {1, tokens}, DType::Int64, fill::Positions{});
    const TensorId rows = b.parameter("position_embed.weight", {config.positions, width});
    x = b.add("pos_add", x, b.embedding("position_embed", places, rows));
  }
  if (config.token_types > 0) {
    const TensorId types = b.input("token_type_ids", of_ids, DType::Int64);
    const TensorId rows = b.parameter("type_embed.weight", {config.token_types, width});
    x = b.add("type_add", x, b.embedding("type_embed", types, rows));
  }
  if (width != config.width) x = b.linear("embed_project", x, config.width, false);
  x = b.layer_norm("embed_norm", x, config.epsilon);
  const TensorId mask =
      b.input("token_mask", {b.step().batch, tokens, 1}, b[x].dtype, fill::Constant{1});
  return b.dropout("drop", b.mul("embed_mask", x, mask), b.dropout_probability(config.dropout));
}

// Of each token with each: made of a number per token when the encoder begins.
TensorId pairs(TraceBuilder& b, const std::string& name, const Shape& shape) {
  const TensorId tokens = b.input(name + ".tokens", {shape[0], shape.back()}, DType::Int64);
  const OutputSpec made{"", shape, DType::Int64};
  return b.opaque(name, std::array{tokens}, std::span(&made, 1), {.operation = "aten::mul"});
}

TensorId relative_places(TraceBuilder& b, const DebertaConfig& config) {
  if (config.span == 0) return no_tensor;
  const TensorId table = b.parameter("relative_embed.weight", {2 * config.span, config.width});
  return config.norms_places ? b.layer_norm("relative_norm", table, config.epsilon) : table;
}

TensorId words_loss(TraceBuilder& b, TensorId x, TensorId table, const DebertaConfig& config) {
  const Shape s = b.shape(x);
  const std::int64_t rows = s[0] * s[1];
  x = b.linear("transform.dense", x, b.shape(table).back());
  x = activation(b, "transform", x, config.activation);
  x = b.layer_norm("transform.norm", x, config.epsilon);
  const TensorId bias = b.parameter("lm_head.bias", {config.vocabulary});
  const TensorId tied = config.tied_head ? table : no_tensor;
  const TensorId logits = vocabulary_head(b, "lm_head", x, tied, config.vocabulary, bias);
  const TensorId labels = b.input("labels", {s[0], s[1]}, DType::Int64, fill::Words{});
  return b.cross_entropy("loss", b.view("logits.rows", logits, {rows, config.vocabulary}),
                         b.view("labels.rows", labels, {rows}));
}

// Its own pooler; the logits of samples that have a label are looked up, in fp32.
TensorId sequence_loss(TraceBuilder& b, TensorId x, double dropout, const DebertaConfig& config) {
  const Shape row = {b.shape(x)[0], b.shape(x)[2]};
  TensorId y = b.select("first_token", x, row);
  y = b.dropout("pooler.drop", y, b.dropout_probability(config.pooler_dropout));
  y = b.linear("pooler.dense", y, config.width);
  y = activation(b, "pooler", y, config.pooler_activation);
  y = head_linear(b, "classifier", b.dropout("classifier.drop", y, dropout), config.labels);
  const TensorId labelled = b.input("labelled", {row[0], 1}, DType::Int64);
  const OutputSpec found{"", b.shape(y), b[y].dtype};
  y = b.opaque("logits.labelled", std::array{y, labelled}, std::span(&found, 1),
               {.operation = "aten::gather", .gradients = 1, .saved = input_bit(0) | input_bit(1)});
  return classification_loss(b, b.cast("logits.float", y, DType::Float32));
}

TensorId loss_of(TraceBuilder& b, TensorId x, TensorId table, const DebertaConfig& config) {
  const double usual = b.dropout_probability(config.dropout);
  switch (config.head) {
    case Head::MaskedLanguage:
      return words_loss(b, x, table, config);
    case Head::SequenceClassification:
      return sequence_loss(
          b, x, b.dropout_probability(config.classifier_dropout.value_or(config.dropout)), config);
    case Head::TokenClassification:
      return token_loss(b, x, {.labels = config.labels, .dropout = usual});
    case Head::QuestionAnswering:
      return question_answering_loss(b, x);
    case Head::None:
      return mean_loss(b, std::array{x});
    case Head::CausalLanguage:
    case Head::Pretraining:
    case Head::NextSentence:
    case Head::ImageClassification:
    case Head::DistilledClassification:
      break;
  }
  CHECK(false && "a head that heads_of() does not name");
  return no_tensor;
}

}  // namespace

Trace build_deberta(const std::string& model, const DebertaConfig& config,
                    const StepOptions& options) {
  TraceBuilder b(model, "deberta", options);
  const std::int64_t tokens = sequence_length(options, config.positions, config.absolute_places);
  const std::int64_t of_table = config.embedding_width ? config.embedding_width : config.width;
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, of_table});
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  b.begin_function();  // DebertaV2Model asks its encoder for what each block begins and ends with
  TensorId x = b.local(embed(b, table, tokens, config));
  b.begin_function();
  const TensorId mask = b.local(pairs(b, "attention_mask", {options.batch, 1, tokens, tokens}));
  const TensorId distances = b.local(pairs(b, "distances", {1, tokens, tokens}));
  const TensorId places = relative_places(b, config);
  const DebertaShared shared{mask, distances, places == no_tensor ? places : b.local(places)};
  for (std::int64_t i = 0; i < config.depth; ++i)
    x = b.local_of_caller(DebertaBlock{b, config, shared, fmt::format("blocks.{}", i)}(x));
  b.end_function();
  b.end_function();
  const TensorId loss = loss_of(b, b.local(x), table, config);
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
