// Liger's kernels in the place of what transformers composes: norms, gated activations, rotations
// (arXiv 2410.10989; ops/{rms_norm,swiglu,geglu,rope}.py of liger-kernel 0.6.4).
#pragma once

#include <array>

#include "traces/models/decoder_parts.h"

namespace tidemark {

struct DecoderConfig;

/// Why Liger, or we, have no kernels for a part of the model, or "".
std::string liger_defect(const DecoderConfig& config);

/// One kernel that reads x in its own dtype and keeps it with 1/rms. The gradient of x is written
/// over that of y where the norm stands before a branch.
TensorId liger_rms_norm(TraceBuilder& builder, const std::string& name, TensorId x, RmsGain gain);

/// f(gate) · up, of which only gate and up are kept; their gradients are written over them.
TensorId liger_gated(TraceBuilder& builder, const std::string& name, TensorId gate, TensorId up,
                     ActivationForm activation);

/// q and k [batch, heads, tokens, d] turned by tables [tokens, d], in their own dtype.
std::array<TensorId, 2> liger_rope(TraceBuilder& builder, const std::string& name,
                                   std::array<TensorId, 2> heads, TensorId cosine, TensorId sine);

/// True for its norm, which every network with its kernels has.
bool is_liger(const OpaqueRow& row);

}  // namespace tidemark
