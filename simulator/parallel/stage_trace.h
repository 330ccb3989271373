// The step of one pipeline stage: some of the blocks, what it receives, and what it sends.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// InputError if the step's rank is none of its stages.
void require_stage(const StepOptions& step);

/// Blocks dealt out over the pp stages of the step's mesh, evenly or as its schedule says, with
/// what stands behind each; the first stage has all that stands before the blocks, the last (of
/// zb-v the first) the head and the loss. Stages may have several chunks, which deal with each
/// other like stages. Of the stage that the step's rank names, or the first. The trace itself
/// without stages. InputError if the blocks cannot be dealt out, or a stage needs more of another
/// than its last block's result.
Trace cut_for_stage(Trace trace);

/// Of a stage's trace, by op: which of the stage's chunks it belongs to, counted from 0.
std::vector<std::int64_t> chunk_of_ops(const Trace& trace);

}  // namespace tidemark
