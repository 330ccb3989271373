// Norms of q and k by head, as each family's code writes them.
#pragma once

#include "traces/models/attention.h"

namespace tidemark {

/// heads [batch, heads, tokens, d] → normed, or as they are where the config has no such norms.
TensorId normed_heads(TraceBuilder& builder, const std::string& name, TensorId heads,
                      const AttentionConfig& config);

}  // namespace tidemark
