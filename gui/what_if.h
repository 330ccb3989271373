// What the what-if panel can change, and what comes of it: the same functions as the command
// line's.
#pragma once

#include "analysis/comparison.h"
#include "analysis/rank_report.h"
#include "gui/opened.h"
#include "gui/planned.h"

namespace tidemark::gui {

/// The inputs of one or more predicted recordings that differ only in their strategy.
struct WhatIf {
  Scenario scenario;                     ///< its strategies are not used
  std::vector<StrategySpec> strategies;  ///< the first is the one shown
  std::string allocator = {};            ///< settings as typed; the scenario's are not used
  std::vector<StrategySpec> plans = {};  ///< of the command line: offered beside the strategies
  /// The first strategy is the plan of this budget, as soon as the front is known.
  std::optional<PlanChoice> planned = {};
};

/// What the panel lets one choose from.
std::vector<StrategySpec> offered(const WhatIf& what_if);

/// The classes of ranks of a pipeline: what each needs, and when it works.
struct Ranks {
  std::vector<Report> reports;                       ///< by stage
  std::vector<std::shared_ptr<const Opened>> steps;  ///< likewise, on the pipeline's clock
  std::size_t tightest = 0, shown = 0;
  PipelineTimes pipeline;
};

/// Those that do not fit first, then those that need most.
std::vector<std::size_t> tightest_first(const Ranks& ranks);

/// An evaluation as a view wants it.
struct Prediction {
  std::shared_ptr<const Opened> opened;  ///< null if the strategy does not apply
  Report report;
  std::shared_ptr<const Ranks> ranks = {};  ///< null without a pipeline
};

/// The scenario with what is typed beside it. Throws InputError if that cannot be read.
Scenario scenario_of(const WhatIf& what_if);

/// One per strategy. Throws InputError for inputs that make no step.
std::vector<Prediction> predict(const WhatIf& what_if);

}  // namespace tidemark::gui
