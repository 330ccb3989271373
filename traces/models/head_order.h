// How heads lie in memory, by the ops that made them: copies and the results of kernels depend on
// it.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// Of a tensor [batch, heads, tokens, d].
enum class HeadOrder : std::uint8_t {
  ByToken,  ///< all heads of a token together, as a projection writes them
  ByHead,   ///< all tokens of a head together: one dense piece
};

HeadOrder head_order(const TraceBuilder& builder, TensorId heads);

}  // namespace tidemark
