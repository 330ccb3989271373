// A learned query that asks all tokens for one vector.
#pragma once

#include <string>

#include "traces/trace_builder.h"

namespace tidemark {

/// x [batch, tokens, width] → [batch, 1, width], by PyTorch's nn.MultiheadAttention. The query is
/// `name`.probe.
TensorId attention_pool(TraceBuilder& builder, const std::string& name, TensorId x,
                        std::int64_t heads);

}  // namespace tidemark
