// Steps of many micro-batches, of which all but the first and the last are alike.
#pragma once

#include <functional>

#include "analysis/stage_script.h"

namespace tidemark {

/// The last of the stages that were asked about, which the next may be like.
struct ScriptedStage {
  PlannedStep planned;
  std::shared_ptr<const StageScript> script;  ///< null: there is none
};

/// A step of one rank of which all is known but the allocator's numbers, which take the longest.
struct TimedStep {
  StepTotals totals;
  Bytes least;  ///< the allocated peak is no less
  /// False, and nothing is set, if it surely fits and allocates less than `other`.
  std::function<bool(const MemoryBudget&, Bytes other, StepTotals&)> set_memory;
};

/// Where that is less work, steps of few micro-batches say what all of them take, to the nanosecond
/// and the byte.
TimedStep timed_step(const std::shared_ptr<const Trace>& trace, const StrategySpec& strategy,
                     const Device& device, std::optional<ScriptedStage>& last);

}  // namespace tidemark
