// A learned score of each head beside those of its keys, which no value belongs to.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// Scores [batch, heads, tokens, keys] → their probabilities, a view of those with the sinks. The
/// parameter is named `name`.sinks.
TensorId probabilities_beside_sinks(TraceBuilder& builder, const std::string& name,
                                    TensorId scores);

}  // namespace tidemark
