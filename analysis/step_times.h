// The times of a step that grow with its micro-batches.
#pragma once

#include "analysis/communication.h"
#include "simulator/parallel/pipeline_clock.h"
#include "simulator/schedule.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark {

struct StepTimes {
  Nanoseconds duration{};
  Nanoseconds waits_for_host{};  ///< of the duration, while the device has nothing to do
  Nanoseconds overlap{};         ///< with two streams busy
  Communication communication;   ///< with other ranks of the mesh

  // Of a pipeline stage alone:
  std::vector<ChunkTimes> chunks = {};  ///< of each, the sum over its micro-batches
  Nanoseconds behind{};                 ///< from the last backward to the end of the step

  bool operator==(const StepTimes&) const = default;
};

/// What a pipeline stage does with one micro-batch on one chunk, one after the other.
struct TimedPass {
  StageWork work = StageWork::Forward;
  std::int64_t chunk = 0;
  Nanoseconds begin{}, end{};
};

/// From the step's begin to the end of its last backward.
std::vector<TimedPass> passes_of(const Trace& trace, const Schedule& schedule,
                                 const Timeline& timeline);

StepTimes times_of(const Trace& trace, const Schedule& schedule, const Timeline& timeline);

}  // namespace tidemark
