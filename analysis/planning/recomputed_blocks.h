// Plans that say the same about every block, in terms of what its ops are.
#pragma once

#include "simulator/strategies/strategy.h"

namespace tidemark {

/// `is_recomputed`, by op: what it makes is computed again, block by block; all else that blocks
/// save stays, and so does what reruns read of the others. A block's output stays in any case.
/// Nothing where no such plan can be carried out.
std::optional<PlannedStep> recomputed_in_blocks(const std::shared_ptr<const Trace>& trace,
                                                const std::vector<bool>& is_recomputed);

}  // namespace tidemark
