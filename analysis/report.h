// What a person wants to know about one strategy, computed once and printed many ways.
#pragma once

#include <optional>
#include <string>

#include "analysis/batch_search.h"
#include "analysis/communication.h"
#include "analysis/recovery_time.h"
#include "analysis/saved.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/cost/device.h"
#include "simulator/strategies/strategy.h"
#include "simulator/timeline.h"

namespace tidemark {

/// What is alive at the peak decides what lowers it.
enum class PeakMaker : std::uint8_t {
  Other,          ///< activations and what belongs to them: strategies decide about these
  OptimizerStep,  ///< its own temporaries, beside parameters, gradients and states
  Loss,           ///< more than half of what a step adds belongs to the logits and their loss
};

/// Where and how much: the numbers of one row. All predicted.
struct Report {
  std::string strategy;
  bool applies = true;
  std::string reason;   ///< why it does not apply
  std::string caution;  ///< what it changes beside memory and time

  std::optional<RankClass> rank = {};  ///< of several classes the one that needs most, or was named

  Bytes live_peak;          ///< present tensors, in the order that the schedule guarantees
  Bytes planned;            ///< one arena with a fixed offset per tensor
  Bytes allocated_peak;     ///< what PyTorch's caching allocator would report …
  Bytes allocated_at_rest;  ///< … between steps
  Bytes reserved_peak;      ///< … and hold from the device
  std::int64_t allocator_retries = 0;
  Bytes pinned;               ///< of the host's memory, for copies of offloaded tensors
  BytesByCategory at_peak{};  ///< Σ = live_peak
  std::string peak_at;        ///< "backward of blocks.11.mlp.gelu"
  PeakMaker peak_maker = PeakMaker::Other;

  SavedBytes saved;
  BlockUnits units;

  Nanoseconds step{};
  double samples_per_second = 0;  ///< of all ranks together
  double throughput = 0;          ///< the same in what a sample consists of, per second …
  std::string_view throughput_unit = "samples";  ///< … "tokens", "images", or just "samples"
  double mfu = 0;  ///< model FLOPs utilization: flops_by_unit() over step and their nominal rates
  RecoveryTime recovery;
  Communication communication;  ///< with other ranks of the mesh
  Nanoseconds bubble{};         ///< while the rank waits for other pipeline stages
  Nanoseconds overlap{};        ///< with two streams busy
  bool launch_bound = false;    ///< the device waits for the host for more than 10 % of the step

  Bytes capacity;  ///< device (or budget) less the CUDA context
  bool fits = false;
  Bytes short_by;     ///< allocated peak above the capacity, if it does not fit; 0 if fragmented
  Bytes over_budget;  ///< of a plan: what it needs above what it was asked to keep to
  /// Does it fit with expandable segments? Known where only fragmentation keeps it out.
  std::optional<bool> fits_expandable = {};
  std::optional<BatchLimits> batches = {};
  /// With expandable segments, where fragmentation makes `batches` uneven.
  std::optional<BatchLimits> expandable_batches = {};

  // Against vanilla of the same comparison; unset without one.
  std::optional<double> memory_ratio = {};  ///< allocated peak
  std::optional<double> time_ratio = {};
  std::optional<double> saved_ratio = {};  ///< per-op units of the middle block
};

/// What memory there is to fit in.
struct MemoryBudget {
  Bytes capacity;  ///< after the CUDA context
  allocator::AllocatorSettings allocator = {};
};

/// All that was made on the way to a report: what views and `explain` look into.
struct Evaluation {
  PlannedStep planned;
  Schedule schedule;
  Timeline timeline;
  Report report;
};

/// Lowers, simulates, packs and replays a planned step, wherever its plan comes from; `asked` is
/// the trace before any rewriting. If a strategy did not apply, only strategy, applies and reason
/// of the report are meaningful.
Evaluation evaluate(const Trace& asked, PlannedStep planned, const Device& device,
                    const MemoryBudget& budget);
Evaluation evaluate(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                    const Device& device, const MemoryBudget& budget);

/// Does the step fit? The short form of evaluate() for searches.
bool fits(const PlannedStep& planned, const Device& device, const MemoryBudget& budget);

/// False proves that it does not fit: without any fragmentation its requests exceed the budget.
/// Unlike fits() it never turns true again when buffers grow.
bool may_fit(const PlannedStep& planned, const Device& device, const MemoryBudget& budget);

}  // namespace tidemark
