// Which ops work with Mesa's 8-bit codes (arXiv 2111.11124) in place of what they save.
#pragma once

#include "traces/op_kind.h"

namespace tidemark {

/// Operands that Mesa's layers quantize: inputs of linears, products, norms and activations, both
/// ends of a softmax. Statistics per row, masks and weights stay as they are.
Operands quantized_operands(OpKind kind);

/// Those of them that the op's backward can decode while it loads them, so that the value itself
/// never lies in memory again. Products on matrix units read values.
Operands decoded_operands(OpKind kind);

/// True if the op's forward can note the extremes of what it writes, so that making codes of it
/// needs no pass to find them.
bool notes_extremes(OpKind kind);

}  // namespace tidemark
