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

/// The part of it that is this kind of work.
Nanoseconds& time_of(ChunkTimes& chunk, StageWork work);

/// Follows the runs of a pipeline stage's step, in order and but for the update's.
class PassWalk {
 public:
  explicit PassWalk(const Trace& trace);

  /// Does the stage turn to something else with this run: other work, another chunk, or the same
  /// for another micro-batch?
  bool begins_pass(const Run& run);
  StageWork work() const { return work_; }
  std::int64_t chunk() const { return chunk_; }

 private:
  const std::vector<std::int64_t> chunk_of_;  ///< by op
  StageWork work_ = StageWork::Forward;
  std::int64_t chunk_ = 0;
  OpId last_ = no_op;  ///< of the pass at hand
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
