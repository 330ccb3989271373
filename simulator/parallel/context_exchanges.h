// What context ranks exchange for their attentions, of a trace whose tensors are cut already.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Each attention reads keys and values that were gathered.
Trace with_gathered_keys(const Trace& from);

/// Each attention, whose results are of some heads already, reads those heads of all tokens; what
/// it makes goes back to the tokens' ranks.
Trace with_exchanged_heads(const Trace& from);

}  // namespace tidemark
