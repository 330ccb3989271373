// The totals of a report alone, for who asks about thousands of steps.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "analysis/report.h"
#include "analysis/step_times.h"
#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/repeated_calls.h"
#include "simulator/cost/model_flops.h"

namespace tidemark {

/// Of one rank. The report says strategy, applies and reason, and what the functions below set.
struct StepTotals {
  Report report;
  StepTimes times = {};
  allocator::AllocatorCalls calls = {};
  ModelFlops flops = {};  ///< per micro-batch
};

/// The schedule, and of the report strategy, applies and reason.
Evaluation place_step(PlannedStep planned);

/// place_step() of the strategy's plan, and the timeline.
Evaluation play_step(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                     const Device& device);

/// All but what set_memory() sets, of a step that was played; `asked` is the trace before any
/// rewriting.
StepTotals totals_of(const Trace& asked, const Device& device, const Evaluation& made);
/// Of the report: step, throughput, MFU, communication and what the host holds up, from the rest.
void set_rates(const Trace& asked, const Device& device, StepTotals& totals);

/// What the caching allocator says, and whether it fits.
void set_memory(const allocator::AllocatorCalls& calls, const MemoryBudget& budget, Report& report);
void set_memory(const allocator::RepeatedCalls& calls, const MemoryBudget& budget, Report& report);

/// Does it surely fit, and allocate less than `other`? Asked before set_memory(), which takes much
/// longer.
bool is_surely_smaller(const allocator::AllocatorCalls& calls, const MemoryBudget& budget,
                       Bytes other);
bool is_surely_smaller(const allocator::RepeatedCalls& calls, const MemoryBudget& budget,
                       Bytes other);

/// evaluate_ranks() without arena, peak, saved tensors and recovery.
Report totals_of_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                       const StrategySpec& strategy, const Device& device,
                       const MemoryBudget& budget, std::optional<RankClass> rank = {});

/// Of all ranks, what the allocator's numbers, which take the longest, are not asked for yet.
struct TimedRanks {
  bool applies = true;
  Nanoseconds step{};
  Bytes least;  ///< the tightest allocates no less
  /// totals_of_ranks(). Asked once.
  std::function<Report(const MemoryBudget&, std::optional<RankClass>)> totals;
};

/// Nothing if the time of the step and what it allocates at least are of no interest. Asked stage
/// by stage: of those that are known so far, both are no less for all.
using IsOfInterest = std::function<bool(Nanoseconds step, Bytes least)>;
std::optional<TimedRanks> timed_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                      const StrategySpec& strategy, const Device& device,
                                      const IsOfInterest& is_wanted);

}  // namespace tidemark
