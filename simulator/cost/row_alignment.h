// In what steps the rows of a product's operands begin. Kernels for tensor cores load 16 bytes at
// once, eight 16-bit elements, where all rows allow it.
#pragma once

#include "traces/trace.h"

namespace tidemark {

inline constexpr int aligned_rows = 8;  ///< elements

/// The largest of 8, 4, 2 and 1 that divides the length of every operand's rows: of linears
/// [m, k] × [n, k] and of products [m, k] × [k, n], k and n. Of all other ops 8.
int row_alignment(const Trace& trace, const Op& op);

}  // namespace tidemark
