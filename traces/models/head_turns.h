// Rotary positions of q and k.
#pragma once

#include "traces/models/attention.h"

namespace tidemark {

/// q and k turned by the tables of `config`, if it has any.
Heads turned_heads(TraceBuilder& builder, const std::string& name, const Heads& heads,
                   const AttentionConfig& config);

}  // namespace tidemark
