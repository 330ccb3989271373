// In which order a pipeline stage takes its micro-batches.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "simulator/plan.h"
#include "traces/trace.h"

namespace tidemark {

/// The forward or the backward of one micro-batch, on one chunk of an interleaved stage.
struct StageAction {
  bool is_backward = false;
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
  bool operator==(const StageAction&) const = default;
};

/// 1F1B begins with as many forwards as stages follow, then takes a forward and a backward in turn
/// (arXiv 1806.03377, 2104.04473; Megatron-LM's core/pipeline_parallel/schedules.py); GPipe takes
/// all forwards first (arXiv 1811.06965). Interleaved stages take as many micro-batches as there
/// are stages through all of their chunks, then as many again, with 2·(stages − stage − 1) +
/// (chunks − 1)·stages forwards ahead (get_pp_rank_microbatches() of Megatron-LM).
std::vector<StageAction> actions_of(const PipelineSchedule& schedule, std::int64_t stages,
                                    std::int64_t stage, std::int64_t micro_batches);

/// How many forwards, of one chunk each, a stage has done more than backwards before it takes both
/// in turn; INT64_MAX: it does all of them first.
std::int64_t forwards_ahead(const PipelineSchedule& schedule, std::int64_t stages,
                            std::int64_t stage);

/// How many micro-batches differentiate() writes one after the other: all, or for a stage the first
/// two, of which all others are made.
std::int64_t written_micro_batches(const StepOptions& step);

/// Of a graph of one or two micro-batches, one after the other: all of the step in the stage's
/// order, each with its own values. The graph itself without stages.
JointGraph order_micro_batches(const Trace& trace, JointGraph graph);

/// Why micro-batches in flight do not go with such a plan, or "".
std::string pipeline_defect(const StepOptions& step, const Plan& plan);

}  // namespace tidemark
