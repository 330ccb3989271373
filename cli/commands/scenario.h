// From text to values: the options of a step, of a device and of a scenario.
#pragma once

#include <map>

#include "analysis/comparison.h"
#include "cli/commands/options.h"

namespace tidemark::cli {

/// A whole number from `min` to `max`, or a UsageError that names `what`.
std::int64_t parse_count(std::string_view text, std::string_view what, std::int64_t min,
                         std::int64_t max);

/// "20GiB", "24 GB", or a UsageError that names the option.
Bytes parse_size(std::string_view text, std::string_view option);

StepOptions step_of(const Options& options);
/// What one would type for that step. The batch is always said.
std::map<std::string_view, std::string> typed_step(const StepOptions& step);

/// One line for each note on what was read of the model for such a step.
std::string notes_on(const Model& model, const StepOptions& step);
/// Where a plan was made for another model.
std::string notes_on(const StrategySpec& strategy, std::string_view model);
/// Both.
std::string notes_on(const Scenario& scenario);

/// The step that the options describe, or the one of a trace file. Notes on its model are added.
Trace trace_of(const Options& options, std::string& notes);

/// Splits at the commas between strategies, not at those within one's options.
std::vector<StrategySpec> parse_strategies(std::string_view list);

/// The strategies and plan files that are named; none if there are none.
std::vector<StrategySpec> named_strategies(const Options& options);

/// What one would type for it: "--strategy mesa", "--plan tuned.plan.json".
std::string as_typed(const StrategySpec& strategy);

/// Of a command that takes one: vanilla unless one is named.
StrategySpec one_strategy(const Options& options);

/// UsageError if the step is that of a rank among others: kernels run one alone.
void require_one_rank(const StepOptions& step);

Scenario scenario_of(const Options& options);

/// The options once for each combination of the values that --batch, --sequence, --image and
/// --device name: one, unless some are lists or ranges.
std::vector<Options> points_of(const Options& options);

}  // namespace tidemark::cli
