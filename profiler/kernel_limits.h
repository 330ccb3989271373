// What kernels ask of an op beyond what makes a trace sound. Plans need less: a captured trace may
// say a shape or dtype that can be counted but not computed with.
#pragma once

#include <string>

#include "traces/trace.h"

namespace tidemark::profiler {

/// Why no kernel can run this op of a sound trace; empty if one can.
std::string kernel_defect(const Trace& trace, const Op& op);

/// InputError that names the first op that no kernel can run.
void require_kernels(const Trace& trace);

}  // namespace tidemark::profiler
