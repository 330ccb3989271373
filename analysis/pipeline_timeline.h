// The step of one pipeline stage on the clock of its pipeline: what it does with a micro-batch is
// there when its turn comes, and in between it waits.
#pragma once

#include <vector>

#include "analysis/rank_report.h"
#include "simulator/parallel/pipeline_clock.h"
#include "simulator/schedule.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark {

/// `alone` is the stage's step without any other, `passes` its passes in the pipeline, which is
/// busy until `total`; what comes behind the last backward comes behind that (of zero-bubble
/// schedules, where others take up the next step, behind the stage's own passes), and the step ends
/// with `step`. Times alone move: the order of runs and of memory events is as it was, and so is
/// what is alive. Example: forward and backward of 10 ns each, which wait for the next stage,
///   alone      0 F 10 B 20 update 25
///   passes     0 F 10 ……… 40 B 50,   total 50
///   is         0 F 10 ……… 40 B 50 update 55
Timeline on_pipeline_clock(const Trace& trace, const Schedule& schedule, const Timeline& alone,
                           const std::vector<PipelinePass>& passes, Nanoseconds total,
                           Nanoseconds step);

/// evaluate_ranks(), with the timeline of a pipeline's stage on the clock of its pipeline.
Evaluation evaluate_on_pipeline_clock(std::span<const std::shared_ptr<const Trace>> traces,
                                      const StrategySpec& strategy, const Device& device,
                                      const MemoryBudget& budget, std::optional<RankClass> rank);

}  // namespace tidemark
