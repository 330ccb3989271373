// Under which names a device's measured curves have a run: its kind, and what else tells apart
// kernels of one kind that reach different shares of what the device's figures promise.
#pragma once

#include <string>

#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

struct CurveKeys {
  std::string kind;  ///< "backward linear bfloat16"
  /// The kind, and of its operands how many there are (a bias, a mask), whether one is spread over
  /// the others, whether rows end in the middle of a vector (row_alignment.h), how long rows are
  /// that are summed up or how many tokens meet (up to the next power of two), and what it does for
  /// Mesa's codes: "backward linear bfloat16, 3 operands".
  std::string alike;
};

CurveKeys curve_keys(const Trace& trace, const Schedule& schedule, const Run& run);

}  // namespace tidemark
