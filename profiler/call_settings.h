// What of a call follows from the trace and the plan alone: settings, rearrangements, quantizers.
#pragma once

#include <vector>

#include "kernels/call.h"
#include "simulator/encoding.h"

namespace tidemark::profiler {

/// The op's attributes, with defaults filled in.
Settings settings_of(const Trace& trace, const Op& op);

/// One per piece, of ops that only move elements; empty for all others.
std::vector<Rearrangement> moves_of(const Trace& trace, const Op& op);

/// Of a tensor of this shape, without memory for its ranges.
Quantizer quantizer_of(const Encoding& encoding, const Shape& shape);

}  // namespace tidemark::profiler
