// gpt-oss' experts: one parameter for each kind of weight of all, biases, a clamped SwiGLU of
// columns that lie beside each other.
#pragma once

#include "traces/models/decoder_parts.h"

namespace tidemark {

struct PickedShares {
  TensorId shares, experts;  ///< [tokens, per_token]
};

/// Rows → softmax of their best scores, in the dtype of these.
PickedShares softmax_of_picked(TraceBuilder& builder, const std::string& name, TensorId rows,
                               const ExpertsConfig& config);

/// [rows, 2·width] → [rows, width]: gate · sigmoid(1.702 gate) · (up + 1), both clamped.
TensorId clamped_swiglu(TraceBuilder& builder, const std::string& name, TensorId both);

/// x [batch, tokens, width] → the same, one expert after the other.
TensorId clamped_experts(TraceBuilder& builder, const std::string& name, TensorId x,
                         const ExpertsConfig& config);

}  // namespace tidemark
