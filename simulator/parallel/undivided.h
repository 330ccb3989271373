// What of a step ranks cannot have a part of, whatever they are: found before any walk over its ops
// would meet the first op or tensor of it.
#pragma once

#include <string>

#include "traces/trace.h"

namespace tidemark {

/// Why ranks of `axis` (tensor or context) cannot share the step, and what to take instead; "" if
/// nothing is known to stand in the way.
std::string undivided(const Trace& trace, Axis axis);

}  // namespace tidemark
