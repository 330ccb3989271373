// The parameters of a network whose norms lost their affine part to the linears behind them
// (MS-BP, arXiv 2406.16282): y = W(γz + β) + b is y = W'z + b' with W' = W·diag(γ), b' = b + Wβ.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark::profiler {

/// By name, row-major.
using NamedValues = std::map<std::string, std::vector<double>>;

/// `before` and `after` are the traces before and after the rewriting. Parameters of `before` in,
/// those of `after` out: the same function of the inputs.
NamedValues merge_affine(const Trace& before, const Trace& after, NamedValues parameters);

/// The gradients that the parameters of `before` have, given those of `after` and the parameters
/// of `before`: dW = dW'·diag(γ) + db'·βᵀ, dγ = Σ over rows of dW'⊙W, dβ = Wᵀ·db'.
NamedValues unmerge_gradients(const Trace& before, const Trace& after,
                              const NamedValues& parameters, NamedValues gradients);

}  // namespace tidemark::profiler
