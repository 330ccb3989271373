// Which values torch.compile keeps for the backward: those that a cheapest cut crosses between the
// forward and what the backward reads (torch/_functorch/partitioners.py of PyTorch 2.6, as Inductor
// calls it: activation_memory_budget 1).
#pragma once

#include <vector>

#include "simulator/compiled/fx_graph.h"

namespace tidemark {

/// In the order of the calls; inputs of the step among them.
std::vector<FxId> saved_values(const FxGraph& graph);

}  // namespace tidemark
