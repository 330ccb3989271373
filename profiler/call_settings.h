// What of a call follows from the trace alone: settings, rearrangements, groups of quantizers.
#pragma once

#include <vector>

#include "kernels/call.h"

namespace tidemark::profiler {

/// The op's attributes, with defaults filled in.
Settings settings_of(const Trace& trace, const Op& op);

/// One per piece, of ops that only move elements; empty for all others.
std::vector<Rearrangement> moves_of(const Trace& trace, const Op& op);

/// The groups of a quantized tensor of this shape, without memory for their ranges.
Quantizer quantizer_for(const Shape& shape);

}  // namespace tidemark::profiler
