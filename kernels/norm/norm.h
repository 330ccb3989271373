// Normalization of rows: the last axis of x, of n elements. Any strides and data dtypes; fp32
// arithmetic, statistics fp32 of shape […, 1]. ε is settings.epsilon. x̂ is the normalized row.
//
//   LayerNorm    x, γ, β → y, mean?, rstd?   mean = Σx/n, rstd = 1/√(Σ(x − mean)²/n + ε) in two
//                passes; x̂ = (x − mean)·rstd, y = x̂·γ + β (arXiv 1607.06450)
//   RmsNorm      x, γ → y, rstd?, normalized?   rstd = 1/√(Σx²/n + ε); x̂ = x·rstd, rounded to the
//                dtype of `normalized` if the op has that output; y = x̂·γ (arXiv 1910.07467, and
//                Hugging Face's LlamaRMSNorm for the rounding)
//   MsLayerNorm, MsRmsNorm   x → y, rstd   the same without γ and β (arXiv 2406.16282)
//
// Backward, with g = dy·γ (Ms: dy):
//   dx = rstd·(g − mean(g) − x̂·mean(g·x̂)), for the Rms forms without mean(g)
//   dγ = Σ dy·x̂, dβ = Σ dy over the rows
// LayerNorm reads x, mean, rstd, RmsNorm x, rstd and normalized; what of that is absent is computed
// anew from x, by the same code. The Ms forms read y and rstd only: y stands for x̂. x, or that y,
// may be codes (array.h).
// Sums over rows are compensated (Kahan) after every 16 rows. Nothing overlaps.
//
// Tolerance: 1e-6 of the row's largest |x̂| resp. |g|·rstd in fp32, then one rounding. NaN or ±∞ in
// a row makes the whole row NaN (RmsNorm: ±∞ makes the finite ones 0), as in PyTorch.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void layer_norm_forward(const Call& call, Workspace& workspace);
void layer_norm_backward(const Call& call, Workspace& workspace);
void rms_norm_forward(const Call& call, Workspace& workspace);
void rms_norm_backward(const Call& call, Workspace& workspace);
void ms_layer_norm_forward(const Call& call, Workspace& workspace);
void ms_layer_norm_backward(const Call& call, Workspace& workspace);
void ms_rms_norm_forward(const Call& call, Workspace& workspace);
void ms_rms_norm_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void layer_norm_forward(const Call& call, Launch& launch);
void layer_norm_backward(const Call& call, Launch& launch);
void rms_norm_forward(const Call& call, Launch& launch);
void rms_norm_backward(const Call& call, Launch& launch);
void ms_layer_norm_forward(const Call& call, Launch& launch);
void ms_layer_norm_backward(const Call& call, Launch& launch);
void ms_rms_norm_forward(const Call& call, Launch& launch);
void ms_rms_norm_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
