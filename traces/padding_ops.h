// Opaque ops of which it is known what tensor-parallel ranks do: each makes the mask of all pairs,
// clears the heads that it has, and squares what it has.
#pragma once

#include <string_view>

#include "traces/trace.h"

namespace tidemark {

inline constexpr std::string_view padding_of_pairs_operation = "aten::logical_or";
inline constexpr std::string_view fill_operation = "aten::masked_fill";
inline constexpr std::string_view square_operation = "aten::pow";

inline bool is_opaque(const Trace& trace, const Op& op, std::string_view operation) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row && row->operation == operation;
}

}  // namespace tidemark
