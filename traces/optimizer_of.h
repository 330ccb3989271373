// Which optimizer updates a parameter of a trace.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// The step's own, or AdamW for what Muon is not for: all but the matrices of linears in blocks.
const OptimizerRow& optimizer_of(const Trace& trace, TensorId parameter);
/// Of a parameter's states, or of those of a part of it, what lies in unified memory.
Bytes paged_state_bytes(const OptimizerRow& row, std::int64_t elements);
/// The form in which it updates. Master weights are those of fused ones.
OptimizerForm update_form_of(const StepOptions& step, const OptimizerRow& row);

}  // namespace tidemark
