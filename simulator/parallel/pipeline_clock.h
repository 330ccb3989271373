// How long all stages of a pipeline take together, and how long each of them waits.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "traces/mesh.h"

namespace tidemark {

/// Of one micro-batch on one stage, with what it sends.
struct StageTimes {
  Nanoseconds forward{}, backward{};
};

/// A stage while it is busy with a micro-batch.
struct PipelinePass {
  std::int64_t micro_batch = 0, chunk = 0;
  bool is_backward = false;
  Nanoseconds begin{}, end{};
};

struct PipelineTimes {
  Nanoseconds total{};             ///< until the last backward is done
  std::vector<Nanoseconds> waits;  ///< by stage: of the total, while it does nothing
  std::vector<std::vector<PipelinePass>> passes = {};  ///< by stage, in order
};

/// A forward begins when the stage before is done with the micro-batch, a backward when the stage
/// behind is; each stage in the order of its schedule. Chunks of an interleaved stage take equal
/// parts of its times, and follow each other around all stages. Linear in stages and micro-batches.
PipelineTimes run_pipeline(const PipelineSchedule& schedule, std::span<const StageTimes> stages,
                           std::int64_t micro_batches);

}  // namespace tidemark
