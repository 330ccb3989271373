// Softmax and log-softmax of rows, the last axis of x. Any strides and data dtypes; fp32 arithmetic
// on whole rows, one rounding to y's dtype, which may be wider than x's.
//
//   Softmax     y = e^(x − max) / Σ e^(x − max)     dx = y·(dy − Σ y·dy), reads y or its codes
//   LogSoftmax  y = x − max − ln Σ e^(x − max)      dx = dy − e^y·Σ dy, reads y
//
// Tolerance: relative 1e-6 (Softmax) of y, 1e-6 of the row's largest |y| (LogSoftmax), of the row's
// Σ|dy| for gradients, then one rounding; on a GPU a result of 16 bits is made of powers within
// 2 + |1.2 · (x − max)| units in the last place of fp32. A row with NaN or +∞, and one of −∞ alone,
// becomes NaN, as in PyTorch; a single −∞ gives 0 resp. −∞. Nothing overlaps.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void softmax_forward(const Call& call, Workspace& workspace);
void softmax_backward(const Call& call, Workspace& workspace);
void log_softmax_forward(const Call& call, Workspace& workspace);
void log_softmax_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void softmax_forward(const Call& call, Launch& launch);
void softmax_backward(const Call& call, Launch& launch);
void log_softmax_forward(const Call& call, Launch& launch);
void log_softmax_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
