// Negative log-likelihood: log-probabilities [rows…, classes] and targets [rows…] (Int64) → loss,
// total weight?: the mean of −log p[target] over the rows whose target is not −100 (PyTorch's
// ignore_index), and their number. Without such a row the loss is NaN, as in PyTorch.
//
// Backward: −d_loss / total weight at the targets, 0 elsewhere; reads the targets and, if it is
// there, the total weight. The sum is in fp64; loss and weight may be of any data dtype. Any
// strides. A target outside of [0, classes) is an InputError. Nothing overlaps.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

void nll_loss_forward(const Call& call, Workspace& workspace);
void nll_loss_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void nll_loss_forward(const Call& call, Launch& launch);
void nll_loss_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
