// Attention without the matrix of weights: softmax(q · kᵀ · factor / √d + bias) · v, tile by tile,
// with the running maximum and sum of Dao et al., "FlashAttention" (arXiv 2205.14135).
//
// q [b, h, t, d], k [b, hk, s, d], v [b, hk, s, e], bias that broadcasts to [b, h, t, s], or absent
// → y [b, h, t, e], and optionally the log-sum-exp of each row of scores, fp32 [b, h, t]; of a
//   longer last axis only the first t are used. The settings may have another scale than 1/√d.
//
// * Query head i reads key head i / (h / hk). causal: token i sees keys j ≤ i, also where t ≠ s.
//   window w > 0: it sees keys j > i − w. A bias axis is 1, missing, or as long as the scores';
//   the first of four may also be shorter by a whole factor and then repeats: b modulo its extent.
// * Backward, with P = exp(scores − lse) and D = Σ dy · y per row:
//     dv = Pᵀ · dy,  dS = P ⊙ (dy · vᵀ − D),  dq = dS · k · factor / √d,  dk = dSᵀ · q · factor /
//     √d,  dbias = Σ dS
//   Saved: q, k, v, bias, y, lse. A missing lse is computed again. Gradients that are summed
//   over heads, tiles or batches are summed in fp32 and rounded once.
// * Any strides and data dtypes; outputs never overlap inputs. Scratch: a few tiles of 256 × 256,
//   and in the backward the gradients of one key head, s · (d + e) fp32; never t × s.
// * Tolerance: a few roundings of the dtype, and 2⁻²² relative for each exponential.
// * A row that sees nothing, or only −∞, gives y = 0, lse = −∞ and no gradient, as PyTorch's fused
//   kernels. NaN, or +∞, in a score makes its row NaN. A NaN or infinity in v reaches every row
//   of a tile that reads it, also those for which that key is hidden: 0 · NaN = NaN.
// * On a GPU: d and e up to 256, else InputError; 16-bit operands go through the tensor cores from
//   compute capability 8.0 on, weights and errors rounded to their dtype on the way; no atomics.
//   Mixed dtypes are computed in fp32. Scratch: two fp32 per query, and dbias once in fp32.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void flash_attention_forward(const Call& call, Workspace& workspace);
void flash_attention_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void flash_attention_forward(const Call& call, Launch& launch);
void flash_attention_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
