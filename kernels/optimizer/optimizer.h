// One optimizer step on parameters: inputs {a gradient each}, outputs {of each the parameter, its
// state}. t counts from 1; rate, decay λ and AdamW's constants are of StepState, all others those
// of update_rules.h.
//
//   AdamW (arXiv 1711.05101, as torch.optim.AdamW):  p −= lr·λ·p,  m = β1·m + (1 − β1)·g,
//         v = β2·v + (1 − β2)·g²,  p −= lr/(1 − β1^t) · m / (√v/√(1 − β2^t) + ε)
//   SGD   (as torch.optim.SGD without momentum):     p −= lr·(g + λ·p)
//   with momentum:     m = 0.9·m + g,  p −= lr·m
//   Adagrad:           s = s + g²,  p −= lr·g / (√s + 1e-10)
//   RMSprop:           s = 0.99·s + 0.01·g²,  p −= lr·g / (√s + 1e-8)
//   Lion (arXiv 2302.06675):  p = (1 − lr·λ)·p − lr·sign(0.9·m + 0.1·g),  m = 0.99·m + 0.01·g
//   AdamW of bitsandbytes:    as AdamW, but p is decayed behind the step
//   Adafactor (arXiv 1804.04235):  a mean of g² by rows and one by columns; the step is g over the
//         root of their product, of a root mean square of at most 1 (torch: and as large as p's)
//
// With Settings::l2_decay g is g + λ·p in those without a λ of their own. With Settings::masters
// the state begins with p in fp32, which the first step copies and every step works on; p is its
// rounding.
//
// The state is one dense array: of AdamW and the rest m in row-major order of the parameter, then
// v; SGD has none. In eight bits (UInt8): the factors of blocks of 256 elements in fp32, of m, then
// of v, then their codes in the numbers of dynamic_map.h; the signed ones for m. Adafactor's, of a
// matrix: the rows' means, then the columns'. Further outputs of a parameter are the temporaries
// that the framework makes; the CPU writes them, so that the memory of a step is really used, CUDA
// does without. Any strides of parameter and gradient; fp32 arithmetic, rounded to the dtype of
// each array. Tolerance: 4 ulp of fp32. NaN and infinities as in IEEE arithmetic.
#pragma once

#include <span>

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
/// One parameter, by any optimizer but plain SGD and AdamW without masters.
void update_otherwise(const Call& call, const Array& gradient, std::span<const Array> outputs,
                      Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void update(const Call& call, Launch& launch);
void update_otherwise(const Call& call, const Array& gradient, const Array* outputs,
                      Launch& launch);

}  // namespace tidemark::cuda
