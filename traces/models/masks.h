// The masks that models make in each step, of places and of which tokens are padding.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// Whether they are made at all: ranks cut masks, and those of older versions are taken as given.
bool makes_masks(const TraceBuilder& builder);

/// Numbers of [batch, 1, tokens, keys], from one per key.
TensorId padding_of_pairs(TraceBuilder& builder, const std::string& name, const Shape& shape,
                          DType dtype);

/// Numbers of [1, 1, tokens, keys], far below 0 where a key is hidden; given, if they are not made.
TensorId made_mask(TraceBuilder& builder, const std::string& name, const Shape& shape, DType dtype,
                   const InputFill& fill);

/// Booleans of [1, 1, tokens, keys]: which keys lie behind their queries.
TensorId later_pairs(TraceBuilder& builder, const std::string& name, const Shape& shape,
                     std::int64_t window = 0);

/// Booleans of [batch, 1, tokens, keys], whether anything is padded or not.
TensorId hidden_pairs(TraceBuilder& builder, const std::string& name, const Shape& shape,
                      const InputFill& fill);

}  // namespace tidemark
