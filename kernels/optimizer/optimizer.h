// One optimizer step on parameters: inputs {a gradient each}, outputs {of each the parameter, its
// state}. t counts from 1; all else is of StepState.
//
//   AdamW (arXiv 1711.05101, as torch.optim.AdamW):  p −= lr·λ·p,  m = β1·m + (1 − β1)·g,
//         v = β2·v + (1 − β2)·g²,  p −= lr/(1 − β1^t) · m / (√v/√(1 − β2^t) + ε)
//   SGD   (as torch.optim.SGD without momentum):     p −= lr·(g + λ·p)
//
// The state is a dense array of 2·numel elements: m in row-major order of the parameter, then v.
// SGD has none. Further outputs of a parameter are the temporaries of numel elements that eager
// AdamW makes of √v; the CPU writes them, so that the memory of a step is really used, CUDA does
// without. Any strides of parameter and gradient; fp32 arithmetic, rounded to the dtype of each
// array. Tolerance: 4 ulp of fp32. NaN and infinities as in IEEE arithmetic.
#pragma once

#include "base/error.h"
#include "kernels/cpu/workspace.h"

namespace tidemark {

/// The parameter itself, its state and temporaries: outputs i · n to i · n + n − 1 belong to input
/// i.
inline std::size_t outputs_per_parameter(const Call& call) {
  CHECK(!call.inputs.empty() && call.outputs.size() % call.inputs.size() == 0);
  return call.outputs.size() / call.inputs.size();
}

}  // namespace tidemark

namespace tidemark::cpu {

void update(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void update(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
