// ModernBERT as in modeling_modernbert.py of Hugging Face transformers, without the flash-attn
// package: padded batches, whose masks are there whether anything is padded or not.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/masks.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

struct Encoder {
  TraceBuilder& b;
  const ModernBertConfig& config;

  TensorId normed(const std::string& name, TensorId x) const {
    return b.layer_norm(name, x, config.epsilon, config.norm_bias);
  }

  // In transformers 4.57 each layer makes its own tables, in the dtype of its q.
  void turn(AttentionConfig& of, const std::string& which, std::int64_t tokens,
            bool sees_all) const {
    const Rotary& rotary = sees_all ? config.rotary : config.local_rotary;
    const auto wave = [&](const char* name, fill::Wave kind) {
      return b.input(which + name, {tokens, of.head_width}, b.compute_dtype(),
                     fill::RotaryTable{kind, rotary});
    };
    of.cosine = wave(".rope.cos", fill::Wave::Cosine);
    of.sine = wave(".rope.sin", fill::Wave::Sine);
  }

  // Where idle masks are left out, blocks that see all share their tables, as the others do.
  AttentionConfig attention(const std::string& which, std::int64_t tokens, bool sees_all) const {
    AttentionConfig of{.heads = config.heads,
                       .head_width = config.width / config.heads,
                       .scales_query = false,
                       .qkv_bias = config.attention_bias,
                       .out_bias = config.attention_bias,
                       .softmax_in_fp32 = true,
                       .probabilities_as_query = true,
                       .dropout = b.dropout_probability(config.attention_dropout),
                       .out_name = "o"};
    const bool idle = sees_all && b.framework().drops_idle_masks && !b.step().padded;
    of.kernel = attention_kernel(b, of, of.head_width, !idle);
    if (b.framework().drops_idle_masks) turn(of, which, tokens, sees_all);
    if (idle) return of;
    const Shape pairs = {1, 1, tokens, tokens};
    of.mask = makes_masks(b)
                  ? padding_of_pairs(b, which, pairs, b.base_dtype())
                  : for_all_samples(b, which + ".samples",
                                    b.input(which, pairs, b.base_dtype(), fill::PaddingMask{}));
    return of;
  }

  // The first block reads what the embedding normed already.
  TensorId block(const std::string& name, TensorId x, const AttentionConfig& with,
                 bool is_first) const {
    b.begin_block(name, x, 0);
    b.part(Part::F);
    TensorId y = is_first ? x : normed(name + ".norm1", x);
    y = self_attention(b, name + ".attn", y, with);
    y = b.dropout(name + ".drop", y, b.dropout_probability(config.attention_dropout));
    x = b.residual(name + ".add1", x, y);
    b.part(Part::G);
    y = mlp(b, name + ".mlp", normed(name + ".norm2", x),
            {.form = MlpForm::GatedPacked,
             .activation = config.activation,
             .width = config.mlp,
             .bias = config.mlp_bias,
             .dropout = b.dropout_probability(config.mlp_dropout)});
    x = b.residual(name + ".add2", x, y);
    b.end_block();
    return x;
  }

  TensorId operator()(TensorId x) const {
    const std::int64_t tokens = b.shape(x)[1];
    const AttentionConfig far = attention("mask", tokens, true);
    const AttentionConfig near = attention("window_mask", tokens, false);
    b.begin_function();  // which names both masks
    for (const TensorId mask : {far.mask, near.mask})
      if (mask != no_tensor) b.local(mask);
    for (std::int64_t i = 0; i < config.depth; ++i) {
      const std::string name = fmt::format("blocks.{}", i);
      const bool sees_all = i % config.global_every == 0;
      AttentionConfig with = sees_all ? far : near;
      if (with.cosine == no_tensor) turn(with, name, tokens, sees_all);
      x = block(name, x, with, i == 0);
    }
    x = normed("norm", x);
    b.end_function();
    return x;
  }
};

// Of all tokens, or of one vector per sequence.
TensorId prediction_head(const Encoder& encoder, TensorId x) {
  TraceBuilder& b = encoder.b;
  const ModernBertConfig& config = encoder.config;
  x = b.linear("head.dense", x, config.width, config.classifier_bias);
  x = activation(b, "head", x, config.head_activation);
  return encoder.normed("head.norm", x);
}

TensorId words_loss(const Encoder& encoder, TensorId x, TensorId table) {
  TraceBuilder& b = encoder.b;
  const ModernBertConfig& config = encoder.config;
  const Shape s = b.shape(x), of_ids = {s[0], s[1]};
  const std::int64_t rows = s[0] * s[1];
  x = prediction_head(encoder, x);
  const TensorId bias =
      config.decoder_bias ? b.parameter("lm_head.bias", {config.vocabulary}) : no_tensor;
  const TensorId tied = config.tied_head ? table : no_tensor;
  TensorId logits = vocabulary_head(b, "lm_head", x, tied, config.vocabulary, bias);
  b.begin_function();
  logits = b.local(b.cast("logits.float", b.local(logits), DType::Float32));
  const TensorId labels = b.input("labels", of_ids, DType::Int64, fill::Words{});
  const TensorId loss =
      b.cross_entropy("loss", b.view("logits.rows", logits, {rows, config.vocabulary}),
                      b.view("labels.rows", labels, {rows}));
  b.end_function();
  return loss;
}

// The mean multiplies by the mask first, which is there in every call.
TensorId of_sequence(const Encoder& encoder, TensorId x) {
  TraceBuilder& b = encoder.b;
  const Shape s = b.shape(x), row = {s[0], s[2]};
  if (!encoder.config.pools_mean) return b.select("first_token", x, row);
  const TensorId mask = b.input("token_mask", {s[0], s[1], 1}, DType::Int64, fill::Constant{1});
  const OutputSpec seen{"", s, b[x].dtype};
  x = b.opaque("pool.seen", std::array{x, mask}, std::span(&seen, 1),
               {.operation = "aten::mul", .gradients = 1, .saved = input_bit(1)});
  return b.mean_pool("pool", x, row);
}

TensorId loss_of(const Encoder& encoder, TensorId x, TensorId table) {
  TraceBuilder& b = encoder.b;
  const ModernBertConfig& config = encoder.config;
  const double dropout = b.dropout_probability(config.classifier_dropout);
  switch (config.head) {
    case Head::MaskedLanguage:
      return words_loss(encoder, x, table);
    case Head::SequenceClassification: {
      const TensorId y = prediction_head(encoder, of_sequence(encoder, x));
      return classification_loss(
          b, head_linear(b, "classifier", b.dropout("classifier.drop", y, dropout), config.labels));
    }
    case Head::TokenClassification:
      return token_loss(b, prediction_head(encoder, x),
                        {.labels = config.labels, .dropout = dropout});
    case Head::QuestionAnswering:
      return question_answering_loss(
          b, b.dropout("classifier.drop", prediction_head(encoder, x), dropout));
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

Trace build_modernbert(const std::string& model, const ModernBertConfig& config,
                       const StepOptions& options) {
  TraceBuilder b(model, "modernbert", options);
  const std::int64_t tokens = sequence_length(options, config.positions, false);
  const Shape of_ids = {options.batch, tokens};
  const TensorId ids = b.input("input_ids", of_ids, DType::Int64, fill::Words{});
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
  const Encoder encoder{b, config};
  TensorId x = encoder.normed("embed_norm", b.embedding("embed", ids, table));
  x = encoder(b.dropout("drop", x, b.dropout_probability(config.embedding_dropout)));
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  const TensorId loss = loss_of(encoder, b.local(x), table);
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
