// What a pipeline stage does with a micro-batch, from a step of three: the first makes gradients,
// those between add to them, and the last is followed by the update. A step of many, in whatever
// order its schedule takes them, consists of these parts.
#pragma once

#include <optional>

#include "analysis/report_totals.h"
#include "simulator/cost/kernel_cost.h"
#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {

/// Runs that follow each other on one stream.
struct Pace {
  Nanoseconds busy{};      ///< of the device
  Nanoseconds launches{};  ///< of the host
  Nanoseconds late{};      ///< from the host's first launch to the device's end, at least
  std::optional<Nanoseconds> first_launch = {};
};

/// One kind of work on one chunk.
struct ActionScript {
  Pace pace;
  Nanoseconds exchanges{};
  Bytes added, most;  ///< to what is allocated: at its end, and meanwhile
  /// Slots from StageScript::own on are the micro-batch's.
  std::vector<allocator::AllocatorCall> calls;
};

/// Of the last action and what comes behind.
struct LastRun {
  Cost cost;
  bool ends_pass = false;  ///< neither an update nor a collective
  bool exchanges = false;
};

struct StageScript {
  PipelineSchedule schedule;
  std::int64_t stages = 1;
  Nanoseconds host_launch{};
  Report report;  ///< strategy, applies, reason
  ModelFlops flops = {};
  std::vector<allocator::AllocatorCall> before;
  std::vector<ActionScript> first, between, last;  ///< by chunk and work
  StageAction tail_action;
  std::vector<LastRun> tail;
  std::vector<allocator::AllocatorCall> tail_calls;  ///< the last's slots are behind the first's
  std::size_t work = 0;                              ///< of them up to the step's last run
  Bytes tail_most;                                   ///< that they add
  std::size_t streams = 1;
  StepTimes streams_tail = {};      ///< of several streams: of the tail alone, without its chunks
  std::uint32_t own = 0, each = 0;  ///< the first slot of the first, and how many each has
};

/// Of fewer micro-batches there is nothing between.
inline constexpr std::int64_t scripted_batches = 3;

/// Of a step of `scripted_batches`; `asked` is its trace before any rewriting. Nothing if its
/// micro-batches share more than gradients, or other streams do something before the last action.
std::optional<StageScript> script_of(const Trace& asked, const Evaluation& placed,
                                     const Device& device);

/// Do both stages do the same, whatever they and their parts are called?
bool are_alike(const PlannedStep& a, const PlannedStep& b);

/// Those of a step with these actions, which end as the script does. No times if the host of a
/// step on several streams is not far enough ahead at its end.
std::optional<StepTimes> times_of(const StageScript& script, std::span<const StageAction> actions);
allocator::AllocatorCalls calls_of(const StageScript& script, std::span<const StageAction> actions);
/// The calls of its last round of so many micro-batches, from one's forward to another's.
allocator::LastRound last_round(const StageScript& script, std::span<const StageAction> actions,
                                std::int64_t micro_batches);

/// What is allocated at once, before any rounding.
Bytes requested_peak(const StageScript& script, std::span<const StageAction> actions);

}  // namespace tidemark
