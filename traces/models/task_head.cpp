// Regression, classification and span losses, built from linears, copies and cross-entropies.
#include "traces/models/task_head.h"

#include <fmt/format.h>

#include "traces/models/chunked_loss.h"
#include "traces/models/language_model.h"
#include "traces/models/preference_loss.h"

namespace tidemark {
namespace {

// nn.MSELoss. Labels come with their sign turned, so that the difference is a sum.
TensorId squared_error(TraceBuilder& b, TensorId logits) {
  const TensorId labels = b.input("labels.negated", b.shape(logits), b[logits].dtype);
  const TensorId difference = b.add("loss.difference", logits, labels);
  return b.mean("loss", b.mul("loss.square", difference, difference));
}

// [batch, tokens, 2] → the loss of one of the two columns, whose places are the classes.
TensorId place_loss(TraceBuilder& b, const std::string& name, TensorId column) {
  const Shape s = b.shape(column);
  const TensorId logits = b.copy(name + ".logits", column, {s[0], s[1]});
  return b.cross_entropy("loss." + name, logits,
                         b.input(name + "_positions", {s[0]}, DType::Int64));
}

}  // namespace

TensorId head_linear(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t out,
                     bool bias) {
  const TensorId weight =
      b.parameter(name + ".weight", {out, b.shape(x).back()}, ParameterRole::Head);
  const TensorId offset =
      bias ? b.parameter(name + ".bias", {out}, ParameterRole::Head) : no_tensor;
  return b.linear_with(name, x, weight, offset);
}

TensorId classification_loss(TraceBuilder& b, TensorId logits, TensorId targets) {
  return b.shape(logits).back() == 1 ? squared_error(b, logits)
                                     : b.cross_entropy("loss", logits, targets);
}

TensorId classification_loss(TraceBuilder& b, TensorId logits) {
  if (b.shape(logits).back() == 1) return squared_error(b, logits);
  return b.cross_entropy("loss", logits, b.input("labels", {b.shape(logits)[0]}, DType::Int64));
}

TensorId last_token_loss(TraceBuilder& b, TensorId x, std::int64_t labels) {
  const std::int64_t batch = b.shape(x)[0], last = b.shape(x)[1] - 1;
  const TensorId scores = head_linear(b, "score", x, labels, false);
  const TensorId pooled = b.copy("score.last", scores, {batch, labels}, LayoutTransform::Slice,
                                 {{AttributeKey::Offset, static_cast<double>(last)}});
  return classification_loss(b, pooled);
}

TensorId token_loss(TraceBuilder& b, TensorId x, const TokenHead& head) {
  const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1];
  const TensorId labels = b.input("labels", {batch, tokens}, DType::Int64);
  const std::string name(head.name);
  const TensorId dropped = b.dropout(name + ".drop", x, head.dropout);
  b.begin_function();
  TensorId logits = b.local(head_linear(b, name, dropped, head.labels));
  logits = b.view("logits.rows", logits, {batch * tokens, head.labels});
  if (head.loss_in_fp32) logits = b.cast("logits.float", logits, DType::Float32);
  const TensorId loss =
      b.cross_entropy("loss", logits, b.view("labels.rows", labels, {batch * tokens}));
  b.end_function();
  return loss;
}

TensorId question_answering_loss(TraceBuilder& b, TensorId x) {
  const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1];
  const TensorId logits = head_linear(b, "qa_outputs", x, 2);
  const Shape column = {batch, tokens, 1};
  const auto columns = b.split("qa_outputs.split", logits, {column, column}, {"start", "end"});
  const TensorId start = place_loss(b, "start", columns[0]);
  return b.average("loss", std::array{start, place_loss(b, "end", columns[1])});
}

namespace {

TensorId words_loss(TraceBuilder& b, const HiddenWords& hidden, const DecoderHead& head) {
  const TensorId x = hidden.x, tied = head.is_tied ? hidden.table : no_tensor;
  const TensorId bias = head.bias ? b.parameter("lm_head.bias", {head.vocabulary}) : no_tensor;
  if (b.step().liger && (has_fused_loss(b.step()) || has_native_loss(b.step())))
    throw UsageError("--loss: Liger has a loss of its own (leave --loss or --liger out)");
  const bool has_no_logits =
      (b.step().loss && !has_fused_loss(b.step()) && !has_native_loss(b.step())) || b.step().liger;
  if (has_no_logits && !hidden.further.empty())
    throw UsageError(
        "--loss: not known beside the prediction of several tokens (leave it out, or take fused)");
  if (has_no_logits && head.logit_cap == 0 && head.logit_factor == 1)
    return chunked_token_loss(b, x, vocabulary_table(b, "lm_head", x, tied, head.vocabulary), bias);
  const TensorId table = vocabulary_table(b, "lm_head", x, tied, head.vocabulary);
  const auto loss_of = [&](TensorId words) {
    TensorId logits = b.linear_with("lm_head", words, table, bias);
    if (head.logit_cap > 0) logits = b.capped("logits", logits, head.logit_cap);
    if (head.logit_factor != 1) logits = b.scale("logits.scale", logits, head.logit_factor);
    return next_token_loss(b, logits, head.token.loss_in_fp32, head.renames_logits);
  };
  std::vector<TensorId> further;  // whose losses come first (process_mtp_loss)
  for (std::size_t i = 0; i < hidden.further.size(); ++i) {
    b.begin_further_token(static_cast<std::int64_t>(i) + 1, true);
    further.push_back(loss_of(hidden.further[i]));
    b.end_further_token();
  }
  TensorId loss = loss_of(x);
  for (std::size_t i = 0; i < further.size(); ++i)
    loss = b.add(fmt::format("loss.with_ahead{}", i + 1), loss, further[i]);
  return loss;
}

}  // namespace

TensorId decoder_loss(TraceBuilder& b, const std::function<HiddenWords()>& model,
                      const DecoderHead& head) {
  if (head.head == Head::CausalLanguage && scores_pairs(b.step()))
    return preference_loss(b, model, head);
  const HiddenWords hidden = model();
  const TensorId x = hidden.x;
  switch (head.head) {
    case Head::CausalLanguage:
      return words_loss(b, hidden, head);
    case Head::SequenceClassification:
      return last_token_loss(b, x, head.token.labels);
    case Head::TokenClassification:
      return token_loss(b, x, head.token);
    case Head::QuestionAnswering:
      return question_answering_loss(b, x);
    case Head::None:
      return mean_loss(b, std::array{x});
    case Head::MaskedLanguage:
    case Head::Pretraining:
    case Head::NextSentence:
    case Head::ImageClassification:
    case Head::DistilledClassification:
      break;
  }
  CHECK(false && "a head that heads_of() does not name");
  return no_tensor;
}

TensorId mean_loss(TraceBuilder& b, std::span<const TensorId> outputs) {
  if (outputs.size() == 1) return b.mean("loss", outputs[0]);
  TensorId sum = no_tensor;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorId mean = b.mean(fmt::format("loss.output{}", i), outputs[i]);
    sum = i == 0
              ? mean
              : b.add(i + 1 == outputs.size() ? "loss" : fmt::format("loss.sum{}", i), sum, mean);
  }
  return sum;
}

}  // namespace tidemark
