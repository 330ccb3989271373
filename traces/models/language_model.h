// What every language model has around its blocks: the number of tokens, the mask, head and loss.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// Tokens per sample: the option, or the config's positions up to 2048. With `learned_positions`
/// there is no embedding beyond the last one, and more tokens are a UsageError.
std::int64_t sequence_length(const StepOptions& options, std::int64_t positions,
                             bool learned_positions);

/// The mask that is added to materialized scores; nothing where a fused kernel masks the future by
/// itself and Hugging Face gives it no padding mask because no token is padding.
TensorId score_mask(TraceBuilder& builder, const std::string& name, const Shape& shape, DType dtype,
                    const InputFill& fill);

/// The product of x with a table [vocabulary, width]: the embedding's own where the head is tied.
/// Adapters never sit here: "all linears" of PEFT leaves out the head.
TensorId vocabulary_head(TraceBuilder& builder, const std::string& name, TensorId x,
                         TensorId tied_table, std::int64_t vocabulary, TensorId bias = no_tensor);

/// Cross-entropy of each token's logits [batch, tokens, vocabulary] with the label of the next.
/// Most models make the logits fp32 before.
TensorId next_token_loss(TraceBuilder& builder, TensorId logits, bool in_fp32 = true);

}  // namespace tidemark
