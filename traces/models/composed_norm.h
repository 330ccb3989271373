// LayerNorm as Cohere's code writes it.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// Without a bias, in fp32 whatever the dtype of x; `weight` is what the last axes of x are
/// multiplied by.
TensorId composed_layer_norm(TraceBuilder& builder, const std::string& name, TensorId x,
                             const Shape& weight);

}  // namespace tidemark
