// The step as a chain of stages: each block is one, and so is what stands before, between and
// behind blocks. A planner decides about each stage by itself.
#pragma once

#include <vector>

#include "simulator/needs.h"
#include "traces/trace.h"

namespace tidemark {

/// What no gradient needs stays for any op that runs again and reads it, once for all of them. Of
/// such reads each answers for an equal part, so that stages together never answer for more than is
/// there.
struct SharedRead {
  TensorId storage = no_tensor;
  std::int64_t bytes = 0;  ///< that the stage answers for, in whole blocks of 512
};

/// Ops [begin, end).
struct Stage {
  OpId begin{}, end{};
  std::int32_t block = -1;  ///< into Trace::blocks
  std::uint32_t kind = 0;   ///< stages of one kind take each other's local plans
  /// What can be decided about: storages that gradients need, and that are made and last read
  /// here by ops that may run again. In the order of their makers: those of two stages of one kind
  /// correspond.
  std::vector<TensorId> decided = {};
  /// By decided: a variable outside of the stage holds it to the end of the forward, so that
  /// letting it go frees its memory only then: the casts of weights that autocast caches.
  std::vector<bool> held = {};
  /// Storages that gradients need, made by an earlier block and last read by this one: blocks'
  /// inputs.
  std::vector<TensorId> inputs = {};
  /// By input: gradients of this stage alone need it, and nothing holds it longer, so that its form
  /// can be decided about here, too.
  std::vector<bool> needed_here = {};
  /// What the block begins with, if nobody behind reads it; a variable of the model's code names it
  /// until an op of a later stage has run, or (no_op) until the block returns.
  TensorId input = no_tensor;
  OpId input_held = no_op;
  /// Such that no gradient needs: they stay where what runs again here reads them.
  std::vector<TensorId> read_again = {};
  /// What earlier stages made, no gradient needs, and ops that may run again here read, in the
  /// order of those.
  std::vector<SharedRead> shared_reads = {};
  /// Copies of what is offloaded run beside the next stage: before the forward of the first op all
  /// has left, before the gradients of the second all comes back. no_op: there is no next stage.
  OpId left_by = no_op, fetched_at = no_op;
};

struct Stages {
  std::vector<Stage> all;                         ///< in op order, without gaps
  std::vector<std::vector<std::uint32_t>> kinds;  ///< by kind: its stages
};

/// Stages whose ops, wiring and needs are equal are of one kind.
Stages stages_of(const Trace& trace, const Needs& needs);

/// Stages [begin, end) of one chunk of a pipeline stage.
struct ChunkOfStage {
  std::size_t begin = 0, end = 0;
};
/// In order; of a trace without chunks all stages.
std::vector<ChunkOfStage> chunks_of(const Trace& trace, const Stages& stages);

/// By stage: all numbers that its cost could depend on in any plan of stages. Who reads what it
/// hands on is not among them: whether that is kept is the reader's to pay. Of two traces of one
/// network, stages of equal signatures cost the same.
std::vector<std::vector<std::int64_t>> signatures_of(const Trace& trace, const Needs& needs,
                                                     const Stages& stages);

/// Ops [begin, end) of one block, or outside of all, with what can be decided about them and what
/// they take from other stages.
Stage stage_of_ops(const Trace& trace, const Needs& needs, OpId begin, OpId end);

/// `count` stages from the first on as one, with what can be decided about it.
Stage joined_stage(const Trace& trace, const Needs& needs, const Stages& single, std::size_t first,
                   std::size_t count);

/// Neighbouring blocks taken as one stage: what crosses from one to the next can be decided about,
/// too.
struct JoinedStages {
  std::size_t length = 0;        ///< so many of them
  Stages chain;                  ///< the step with its blocks joined, from each run's first on
  std::vector<Stage> beginning;  ///< by single stage: what begins with it, of a kind of the chain;
                                 ///< without ops where there is none
};

/// `single` are the trace's stages_of().
JoinedStages join(const Trace& trace, const Needs& needs, const Stages& single, std::size_t length);

}  // namespace tidemark
