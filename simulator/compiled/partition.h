// Which values torch.compile keeps for the backward: those that a cheapest cut crosses between the
// forward and what the backward reads (torch/_functorch/partitioners.py of PyTorch 2.6, as Inductor
// calls it: activation_memory_budget 1).
#pragma once

#include <vector>

#include "simulator/compiled/fx_graph.h"

namespace tidemark {

/// In the order of the calls; inputs of the step among them.
std::vector<FxId> saved_values(const FxGraph& graph);

/// The same in a checkpoint whose policy chooses from the calls of ops (by op: kept?): what a kept
/// op's kernel makes stays, all else runs again. Only a cat, which Inductor writes anew, loses what
/// the policy said about it, and stays like a kernel's result.
std::vector<FxId> saved_values(const FxGraph& graph, const std::vector<bool>& kept);

}  // namespace tidemark
