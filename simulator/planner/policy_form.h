// Local plans that torch.utils.checkpoint's selective form can carry out: outputs of chosen calls
// stay, and all else of the block runs again.
#pragma once

#include <vector>

#include "simulator/planner/proposals.h"

namespace tidemark {

/// The undominated choices of calls, of a stage that is a block. None where it is not known what
/// PyTorch calls an op of the block.
std::vector<LocalPlan> policy_plans(const ProposalInput& input);

/// Of such a plan: the ops whose calls stay.
std::vector<OpId> saved_ops(const Trace& trace, const Stage& stage, const LocalPlan& local);

}  // namespace tidemark
