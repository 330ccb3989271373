// How long all stages of a pipeline take together, and how long each of them waits.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {

/// Of one micro-batch on one chunk of a stage, with what it sends.
struct ChunkTimes {
  Nanoseconds forward{}, backward{};
  Nanoseconds weights{};  ///< of schedules that split backwards; their gradients of inputs alone
                          ///< are `backward` then
  bool operator==(const ChunkTimes&) const = default;
};

/// A stage while it is busy with a micro-batch.
struct PipelinePass {
  StageAction action;
  Nanoseconds begin{}, end{};
};

struct PipelineTimes {
  /// From one step's begin to the next's: as long as the stage that takes longest from its first
  /// pass to its last. But with zero-bubble schedules that is the first one, which ends last.
  Nanoseconds total{};
  Nanoseconds end{};               ///< when the last pass of all is done
  std::vector<Nanoseconds> waits;  ///< by stage: of the total, while it does nothing
  std::vector<std::vector<PipelinePass>> passes = {};  ///< by stage, in order
};

/// A forward begins when the chunk before is done with the micro-batch, a backward when the chunk
/// behind is; each stage in the order of its schedule. `chunks`: in the order of the model, as many
/// of each stage. Linear in chunks and micro-batches.
PipelineTimes run_pipeline(const PipelineSchedule& schedule, std::span<const ChunkTimes> chunks,
                           std::int64_t micro_batches);

}  // namespace tidemark
