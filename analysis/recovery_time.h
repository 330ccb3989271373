// What recovery takes, and what of it a second stream hides. One definition, for predicted and for
// measured steps: a step on two streams beside the step of the same plan on one.
#pragma once

#include "simulator/plan.h"
#include "simulator/timeline.h"

namespace tidemark {

struct RecoveryTime {
  Nanoseconds alone{};   ///< runs that recover, in the step on one stream
  Nanoseconds hidden{};  ///< how much sooner the step ends on two; negative where it ends later

  bool operator==(const RecoveryTime&) const = default;
};

/// Recomputes or undoes a coupling.
bool recovers(const Schedule& schedule, const TimedRun& run);

/// Of a plan without overlap.
RecoveryTime recovery_time(const Schedule& schedule, const Timeline& timeline);

/// `one` is of on_one_stream(plan), or of the graph placed on one stream; `two` of the plan.
RecoveryTime recovery_time(const Schedule& schedule_of_one, const Timeline& one,
                           const Timeline& two);

/// The same decisions, recovery and gradients after each other.
Plan on_one_stream(Plan plan);

}  // namespace tidemark
