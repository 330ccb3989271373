// The arithmetic that a network needs, however it is run: what model FLOPs utilization counts.
#pragma once

#include <span>

#include "traces/trace.h"

namespace tidemark {

/// FLOP of the matrix products of one step, and of opaque ops that say theirs, forward and
/// backward, nothing twice: no recomputation, neither a strategy's nor that inside fused attention.
/// Causal attention counts in full, as in arXiv 2204.02311, appendix B. Of the busiest of the ranks
/// that share experts, what all of them do on average.
double model_flops(const Trace& trace);

/// The same by the units that products run on.
struct ModelFlops {
  double own = 0;           ///< the precision's
  double fp8 = 0, fp4 = 0;  ///< those of codes in eight and in four bits

  double all() const { return own + fp8 + fp4; }
};
ModelFlops flops_by_unit(const Trace& trace);
/// …, given which inputs of each op get a gradient.
ModelFlops flops_by_unit(const Trace& trace, std::span<const std::uint32_t> gradients);

}  // namespace tidemark
