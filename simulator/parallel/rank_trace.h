// The step of one rank: a model's trace, cut as the mesh says.
#pragma once

#include "traces/models/model_config.h"

namespace tidemark {

/// The part of a rank-alone step that each of its cp and tp ranks has, with collectives between the
/// parts; the trace itself without either. InputError if the step cannot be cut so.
Trace cut_for_ranks(Trace trace);

/// build_trace(), cut for the context and tensor-parallel ranks of the mesh, and of its stages for
/// the one that the step's rank names, or the first.
Trace build_rank_trace(const Model& model, const StepOptions& options);
/// The part of it that a stage has, of a trace that is cut for its other ranks.
Trace build_stage_trace(Trace cut);

/// A recorded step of as many micro-batches as `step` states, and as that of each of the replicas
/// that it states: of a mesh with no other axis, and of their sharding; the rest of `step` is not
/// looked at. As it was recorded, where it states none. InputError if it cannot be.
Trace as_stated(Trace recorded, const StepOptions& step);

}  // namespace tidemark
