// Losses of a language model whose logits never lie in memory as a whole.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// The loss that the step asks for, of hidden states [batch, tokens, width] through a table
/// [vocabulary, width] and perhaps a bias: chunks of rows that are checkpointed, or Liger's kernel.
TensorId chunked_token_loss(TraceBuilder& builder, TensorId x, TensorId table, TensorId bias);

/// True for the ops that it makes.
bool is_chunked_loss(const OpaqueRow& row);

}  // namespace tidemark
