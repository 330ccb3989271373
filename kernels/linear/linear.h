// Matrix products.
//
// linear:  x [..., in], W [out, in], b [out] or absent → y [..., out]
//   y = x · Wᵀ + b,   dx = dy · W,   dW = dyᵀ · x,   db = Σ dy over all rows
// matmul:  a [..., m, k], b [..., k, n] → y [..., m, n]
//   y = a · b,   da = dy · bᵀ,   db = aᵀ · dy, each summed over the batches that it was repeated
//   for
//
// Batch axes are aligned at the end; a missing axis, or one of a single element, is repeated. The
// first axis may also be shorter by a whole factor: batch i then reads i modulo its extent (window
// masks over batch · windows).
//
// * Any strides and data dtypes, mixed too; outputs must not repeat elements and never overlap
//   inputs. fp32 with a contiguous last or next to last axis is read and written where it lies.
// * Saved: x (or a) where dW (or db) is wanted, W (or b) where dx (or da) is. An absent gradient
//   of the output counts as zero.
// * Sums are fp32; one rounding to the output's dtype. Tolerance against exact arithmetic: the
//   rounding of the dtype, and of fp32 sums (error grows no faster than √k · 2⁻²⁴ · Σ|a|·|b|).
//   dW and db are one sum over all rows, without a temporary per batch.
// * NaN and infinity propagate as in the sums: 0 · ∞ is NaN.
// * On a GPU the products are cuBLASLt's, in true fp32 (no TF32), or 16-bit factors with fp32 sums;
//   operands that it cannot read where they lie are copied to scratch first.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void linear_forward(const Call& call, Workspace& workspace);
void linear_backward(const Call& call, Workspace& workspace);
void matmul_forward(const Call& call, Workspace& workspace);
void matmul_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void linear_forward(const Call& call, Launch& launch);
void linear_backward(const Call& call, Launch& launch);
void matmul_forward(const Call& call, Launch& launch);
void matmul_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
