// Which call leads to a CPU kernel: what a backend, which is given calls, must be told to run its
// twin.
#pragma once

#include "tests/emulation/twin.h"

namespace tidemark {

struct LeadingCall {
  Pass pass;
  OpKind kind;
  Formula formula;
};

/// nullptr: no call does, and so nothing ever runs the kernel.
const LeadingCall* leading_call(CpuKernel kernel);

}  // namespace tidemark
