// What every language model has around its blocks: the number of tokens, the mask, head and loss.
#pragma once

#include "traces/models/attention.h"

namespace tidemark {

/// Tokens per sample: the option, or the config's positions up to 2048. With `learned_positions`
/// there is no embedding beyond the last one, and more tokens are a UsageError.
std::int64_t sequence_length(const StepOptions& options, std::int64_t positions,
                             bool learned_positions);

/// Settles which kernel runs, and gives it the mask that it is handed. Scores in memory always have
/// one. A fused kernel masks the future by itself and is given a mask only where tokens are
/// padding, or where a window hides some of the past.
void settle_attention(TraceBuilder& builder, AttentionConfig& attention, const std::string& name,
                      const Shape& mask, DType dtype, const InputFill& fill);

/// The product of x with a table [vocabulary, width]: the embedding's own where the head is tied.
/// Adapters never sit here: "all linears" of PEFT leaves out the head.
TensorId vocabulary_head(TraceBuilder& builder, const std::string& name, TensorId x,
                         TensorId tied_table, std::int64_t vocabulary, TensorId bias = no_tensor);
/// That table.
TensorId vocabulary_table(TraceBuilder& builder, const std::string& name, TensorId x,
                          TensorId tied_table, std::int64_t vocabulary);

/// Cross-entropy of each token's logits [batch, tokens, vocabulary] with the label of the next.
/// Most models make the logits fp32 before. `renames` says that these take the name of the others.
TensorId next_token_loss(TraceBuilder& builder, TensorId logits, bool in_fp32 = true,
                         bool renames = false);

}  // namespace tidemark
