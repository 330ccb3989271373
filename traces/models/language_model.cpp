// The bounds of a sequence's length, the vocabulary's projection and the shifted next-token loss.
#include "traces/models/language_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/models/masks.h"

namespace tidemark {

std::int64_t sequence_length(const StepOptions& options, std::int64_t positions,
                             bool learned_positions) {
  constexpr std::int64_t usual_limit = 2048;
  const std::int64_t learned = options.tuning.tokens;
  const std::int64_t tokens = options.sequence.value_or(
      std::max<std::int64_t>(1, std::min(positions, usual_limit) - learned));
  if (tokens < 1)
    throw UsageError(fmt::format("sequence {} is not positive (use 1 or more)", tokens));
  if (learned_positions && tokens + learned > positions)
    throw UsageError(
        fmt::format("sequence {} exceeds the model's {} learned positions (use {} or "
                    "less)",
                    tokens, positions, positions - learned));
  return tokens;
}

namespace {

// create_bidirectional_mask() of transformers 5: none where nothing is padded, else of all pairs.
bool is_bidirectional(const TraceBuilder& b, const InputFill& fill) {
  return makes_masks(b) && b.framework().drops_idle_masks && !b.framework().compiles &&
         std::holds_alternative<fill::PaddingMask>(fill);
}

}  // namespace

void settle_attention(TraceBuilder& b, AttentionConfig& attention, const std::string& name,
                      const Shape& mask, DType dtype, const InputFill& fill) {
  const std::int64_t tokens = mask.back(), queries = mask[2] == 1 ? tokens : mask[2];
  const bool has_past = prefix_tokens(b.step().tuning) > 0 && queries < tokens;
  const bool hides = (attention.window > 0 && tokens >= attention.window) || has_past;
  const bool is_packed = attention.is_unmasked && b.framework().packs_unmasked;
  // While it traces, transformers cannot look whether a mask hides anything, so that one stays.
  const bool keeps_mask = b.step().padded || b.framework().compiles;
  const bool has_mask = keeps_mask || hides || is_packed || attention.is_always_masked;
  const bool is_masked = b.framework().picks_fused_attention && has_mask;
  attention.kernel = attention_kernel(b, attention, attention.head_width, is_masked);
  const Shape of_all = {1, 1, queries, tokens};
  switch (*attention.kernel) {
    case AttentionKernel::Eager:
      if (is_bidirectional(b, fill)) {
        if (b.step().padded) attention.mask = b.local(padding_of_pairs(b, name, of_all, dtype));
        return;
      }
      if (attention.masks_each_sample && mask[0] == 1 && makes_masks(b) &&
          std::holds_alternative<fill::PaddingMask>(fill)) {
        attention.mask = b.local(padding_of_pairs(b, name, mask, dtype));
        return;
      }
      attention.mask = made_mask(b, name, mask, dtype, fill);
      if (attention.masks_each_sample && mask[0] == 1)
        attention.mask = b.local(for_all_samples(b, name + ".samples", attention.mask));
      return;
    case AttentionKernel::Composed:
      if (is_masked || attention.causal)
        attention.mask = b.local(made_mask(b, name, of_all, DType::Float32, fill));
      return;
    case AttentionKernel::Flash:
    case AttentionKernel::MemoryEfficient:
      break;
  }
  if (!is_masked) return;
  const bool is_made = makes_masks(b) && !b.framework().compiles;
  if (is_made && (attention.converts_mask || b.framework().drops_idle_masks)) {
    attention.mask = b.local(hidden_pairs(b, name, of_all, fill));
    return;
  }
  if (is_made && std::holds_alternative<fill::PaddingMask>(fill)) {
    attention.mask = b.local(padding_of_pairs(b, name, of_all, dtype));
    return;
  }
  // The numbers of all samples take the name of those of one.
  attention.mask = made_mask(b, name, of_all, is_made ? dtype : b.compute_dtype(), fill);
  if (!attention.converts_mask)
    attention.mask = for_all_samples(b, name + ".numbers", attention.mask);
  b.local(attention.mask);
}

TensorId vocabulary_head(TraceBuilder& b, const std::string& name, TensorId x, TensorId tied_table,
                         std::int64_t vocabulary, TensorId bias) {
  return b.linear_with(name, x, vocabulary_table(b, name, x, tied_table, vocabulary), bias);
}

TensorId vocabulary_table(TraceBuilder& b, const std::string& name, TensorId x, TensorId tied_table,
                          std::int64_t vocabulary) {
  return tied_table != no_tensor ? b.tied(name, tied_table)
                                 : b.parameter(name + ".weight", {vocabulary, b.shape(x).back()});
}

// Up to transformers 4.47 the logits become fp32, GPT-2's apart, and all but the last token's are
// copied to one piece, with the labels of all but the first. Later (loss_utils.py) all models'
// logits become fp32 and the labels are shifted. The variables of the model and of the loss stay.
// A framework that has a loss of its own makes of the logits what that reads.
TensorId next_token_loss(TraceBuilder& b, TensorId logits, bool in_fp32, bool renames) {
  const std::int64_t batch = b.shape(logits)[0], tokens = b.shape(logits)[1];
  const std::int64_t vocabulary = b.shape(logits)[2];
  const Framework& framework = b.framework();
  const bool shifts = framework.shifts_logits && tokens > 1;
  const std::int64_t scored = shifts ? tokens - 1 : tokens;
  b.begin_function();
  if (!renames) b.local(logits);
  // The code pads labels by one that is ignored before it shifts them. Here the next word is there.
  const std::int64_t given = framework.shifts_labels ? tokens + 1 : tokens;
  TensorId labels = b.input("labels", {batch, given}, DType::Int64, fill::Words{});
  TensorId scores = logits;
  if ((in_fp32 && !framework.vocabulary_loss) || framework.shifts_labels)
    scores = b.local(b.cast("logits.float", logits, DType::Float32));
  if (shifts) {
    scores = b.local(b.copy("logits.shift", scores, {batch, scored, vocabulary}));
    labels = b.copy("labels.shift", labels, {batch, scored}, LayoutTransform::Slice,
                    {{AttributeKey::Offset, 1}});
  } else if (framework.shifts_labels) {
    labels = b.local(b.copy("labels.shift", labels, {batch, tokens}, LayoutTransform::Slice,
                            {{AttributeKey::Offset, 1}}));
  }
  scores = b.view("logits.rows", scores, {batch * scored, vocabulary});
  labels = b.view("labels.rows", labels, {batch * scored});
  const TensorId loss = b.cross_entropy("loss", scores, labels);
  b.end_function();
  return loss;
}

}  // namespace tidemark
