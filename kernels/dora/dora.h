// What an adapted weight's rows measure, for DoRA (arXiv 2402.09353; tuners/lora/dora.py of peft).
//
//   DoraNorm  W [out, in], A [rank, in], B [out, rank] → norm [out] of the rows of W + B·A; and on
//   the
//             way, as the framework makes them, the identity [in, in], its rows through A [in,
//             rank], and B·A [out, in]
//
// No gradient. Any strides and data dtypes; sums in fp32, each output rounded once, the norm of
// what B·A was rounded to. Tolerance as for linear.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void dora_norm_forward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void dora_norm_forward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
