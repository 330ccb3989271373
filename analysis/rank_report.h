// One strategy on a rank of each class: whose memory is the tightest, and how long all take
// together.
#pragma once

#include <span>

#include "analysis/report.h"
#include "simulator/parallel/pipeline_clock.h"
#include "traces/models/model_config.h"

namespace tidemark {

/// The traces of a model's rank classes, one per pipeline stage.
std::vector<std::shared_ptr<const Trace>> rank_traces(const Model& model, const StepOptions& step);

/// The strategy on each class.
struct RankEvaluations {
  std::vector<Evaluation> classes;  ///< by stage, with the time and throughput of the pipeline
  std::size_t tightest = 0;  ///< does not fit before fits; then what needs most allocated bytes
  PipelineTimes pipeline;    ///< until the last backward; empty of one class
};

/// If the strategy does not apply to a class, that one alone is there, and says why.
RankEvaluations evaluate_all_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                   const StrategySpec& strategy, const Device& device,
                                   const MemoryBudget& budget);
/// Each with a plan of its own.
RankEvaluations evaluate_all_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                                   std::vector<PlannedStep> plans, const Device& device,
                                   const MemoryBudget& budget);

/// The class that is shown: the one that was named, or else the tightest.
std::size_t shown_rank(const RankEvaluations& all, const std::optional<RankClass>& named);

/// Evaluates the strategy on each class. The result is that of `rank`, or of the class that needs
/// most (in allocated bytes; does not fit before fits), with the time and throughput of the
/// pipeline. Of one trace: evaluate(). A strategy that does not apply to one class does not apply.
Evaluation evaluate_ranks(std::span<const std::shared_ptr<const Trace>> traces,
                          const StrategySpec& strategy, const Device& device,
                          const MemoryBudget& budget, std::optional<RankClass> rank);

}  // namespace tidemark
