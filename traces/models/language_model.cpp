// The bounds of a sequence's length, the vocabulary's projection and the shifted next-token loss.
#include "traces/models/language_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {

std::int64_t sequence_length(const StepOptions& options, std::int64_t positions,
                             bool learned_positions) {
  constexpr std::int64_t usual_limit = 2048;
  const std::int64_t tokens = options.sequence.value_or(std::min(positions, usual_limit));
  if (tokens < 1)
    throw UsageError(fmt::format("sequence {} is not positive (use 1 or more)", tokens));
  if (learned_positions && tokens > positions)
    throw UsageError(
        fmt::format("sequence {} exceeds the model's {} learned positions (use {} or "
                    "less)",
                    tokens, positions, positions));
  return tokens;
}

TensorId score_mask(TraceBuilder& b, const std::string& name, const Shape& shape, DType dtype,
                    const InputFill& fill) {
  if (b.step().attention.value_or(Attention::Flash) == Attention::Flash) return no_tensor;
  return b.input(name, shape, dtype, fill);
}

TensorId vocabulary_head(TraceBuilder& b, const std::string& name, TensorId x, TensorId tied_table,
                         std::int64_t vocabulary, TensorId bias) {
  const TensorId table = tied_table != no_tensor
                             ? tied_table
                             : b.parameter(name + ".weight", {vocabulary, b.shape(x).back()});
  return b.linear_with(name, x, table, bias);
}

// The loss of Hugging Face's causal models up to 4.47: the logits become fp32, GPT-2's apart; all
// but the last token's are copied to one piece, with the labels of all but the first.
TensorId next_token_loss(TraceBuilder& b, TensorId logits, bool in_fp32) {
  const std::int64_t batch = b.shape(logits)[0], tokens = b.shape(logits)[1];
  const std::int64_t vocabulary = b.shape(logits)[2];
  const bool shifts = b.framework().shifts_logits && tokens > 1;
  const std::int64_t scored = shifts ? tokens - 1 : tokens;
  TensorId labels = b.input("labels", {batch, tokens}, DType::Int64, fill::Words{});
  TensorId scores = in_fp32 ? b.cast("logits.float", logits, DType::Float32) : logits;
  if (shifts) {
    scores = b.copy("logits.shift", scores, {batch, scored, vocabulary});
    labels = b.copy("labels.shift", labels, {batch, scored}, LayoutTransform::Slice,
                    {{AttributeKey::Offset, 1}});
  }
  scores = b.view("logits.rows", scores, {batch * scored, vocabulary});
  labels = b.view("labels.rows", labels, {batch * scored});
  return b.cross_entropy("loss", scores, labels);
}

}  // namespace tidemark
