// What the schedule adds to the ops: outputs[0] = …, any strides and data dtypes.
//
//   fill        1
//   accumulate  Σ inputs, each summed over the axes where it is longer than the output (aligned at
//               their ends), or repeated where it is shorter. outputs[0] may be any of the inputs,
//               in the same layout; the inputs may be one and the same array.
//   subtract    inputs[0] − inputs[1]; may be in place, too: a coupling undone
//
// fp32 arithmetic. Two inputs are rounded once; of further ones each is rounded to the output's
// dtype, unless an axis is summed, which is compensated (Kahan) in fp32 and rounded once.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void fill(const Call& call, Workspace& workspace);
void accumulate(const Call& call, Workspace& workspace);
void subtract(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void fill(const Call& call, Launch& launch);
void accumulate(const Call& call, Launch& launch);
void subtract(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
