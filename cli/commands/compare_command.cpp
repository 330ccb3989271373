// `tidemark compare`: one comparison or a sweep in any format, and which step to explain next.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"
#include "analysis/planning/planning.h"
#include "analysis/sweep.h"
#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/scenario.h"
#include "cli/reports/html_report.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "simulator/plan_json.h"
#include "traces/framework.h"

namespace tidemark::cli {
namespace {

std::string picture(const Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  std::vector<std::string> pictures = {
      exports::tradeoff_svg({comparison.rows, comparison.budget.capacity,
                             fmt::format("{} on {}", scenario.model.name, scenario.device.title)})};
  if (scenario.finds_largest_batch)
    pictures.push_back(exports::batches_svg(comparison.rows, scenario.model.name));
  return exports::stacked(pictures);
}

bool shows_units(const Comparison& comparison, const Options& options) {
  return options.units || find_framework(comparison.scenario.step.framework).counts_units;
}

std::string print(const Comparison& comparison, Format format, const Options& options) {
  return written_as(format, {{Format::Json, [&] { return comparison_json(comparison); }},
                             {Format::Csv, [&] { return comparison_csv(comparison); }},
                             {Format::Markdown, [&] { return comparison_markdown(comparison); }},
                             {Format::Html,
                              [&] {
                                return html_report({&comparison, 1});
                              }},
                             {Format::Svg, [&] { return picture(comparison); }},
                             {Format::Table, [&] {
                                return comparison_table(comparison, style_of(options),
                                                        shows_units(comparison, options));
                              }}});
}

std::string print_sweep(std::span<const Comparison> points, Format format, const Options& options) {
  const auto pictures = [&] { return exports::stacked(sweep_svgs(points, exports::page_width)); };
  return written_as(format,
                    {{Format::Json, [&] { return sweep_json(points); }},
                     {Format::Csv, [&] { return sweep_csv(points); }},
                     {Format::Markdown, [&] { return sweep_markdown(points); }},
                     {Format::Html, [&] { return html_report(points); }},
                     {Format::Svg, pictures},
                     {Format::Table, [&] { return sweep_table(points, style_of(options)); }}});
}

// Worth explaining: the fastest technique that fits, or else the one that needs least.
const StrategySpec* most_interesting(const Comparison& comparison) {
  const Report* best = nullptr;
  for (const Report& row : comparison.rows) {
    if (!row.applies || row.strategy == reference_strategy().name) continue;
    const bool better = !best || (row.fits != best->fits ? row.fits
                                  : row.fits             ? row.step < best->step
                                             : row.allocated_peak < best->allocated_peak);
    if (better) best = &row;
  }
  if (!best) return nullptr;
  return &comparison.scenario.strategies[static_cast<std::size_t>(best - comparison.rows.data())];
}

std::string suggestion(const Comparison& comparison, const Options& options) {
  const StrategySpec* strategy = most_interesting(comparison);
  if (!strategy) return "";
  if (strategy->plan && strategy->plan->file().empty()) {
    Options of_plan = options;
    of_plan.budget = options.plan_budget;
    return fmt::format("Next: tidemark plan {}{}{}\n", shell_quoted(options.subject),
                       as_typed(options, "step"), as_typed(of_plan, "device"));
  }
  return fmt::format("Next: tidemark explain {}{}{} {}\n", shell_quoted(options.subject),
                     as_typed(options, "step"), as_typed(options, "device"), as_typed(*strategy));
}

// The plan for --plan-budget stands among the strategies like one from a file.
std::string add_plan(const Options& options, Scenario& scenario) {
  const Bytes budget = parse_size(*options.plan_budget, "--plan-budget");
  const Planning planning = plan_within(scenario, {.budget = budget});
  if (!planning.feasible)
    return fmt::format("note: --plan-budget: no plan keeps to {}; tidemark plan says why\n",
                       to_text(budget));
  StrategySpec plan = read_plan(plan_text(planning), "");
  plan.text = planning.comparison.rows.back().strategy;
  scenario.strategies.push_back(std::move(plan));
  return "";
}

Result run_sweep(const std::vector<Options>& all, Format format, const Options& options) {
  std::vector<Scenario> scenarios;
  for (const Options& point : all) scenarios.push_back(scenario_of(point));
  const Progress progress(options, "points", scenarios.size());
  const std::vector<Comparison> points = sweep(scenarios, std::cref(progress));
  Result result{print_sweep(points, format, options), notes_on(scenarios.front()), ExitCode::Ok};
  const bool any_fits = std::ranges::any_of(points, [](const Comparison& point) {
    return std::ranges::any_of(point.rows, &Report::fits);
  });
  if (options.require_fit && !any_fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace

Result run_compare(const Options& options) {
  if (options.replay) return run_replayed_comparison(options);
  const Format format = format_of(options, for_compare);
  const std::vector<Options> points = points_of(options);
  if (points.size() > 1 && options.plan_budget)
    throw UsageError("--plan-budget plans for one step (give one batch, length and device)");
  if (points.size() > 1) return run_sweep(points, format, options);
  Scenario scenario = scenario_of(points.front());
  const std::string note = options.plan_budget ? add_plan(options, scenario) : "";
  const Progress progress(options, "strategies", scenario.strategies.size());
  const auto tried = [&](std::int64_t batches, std::int64_t at_most) {
    progress.within(fmt::format("{} of at most {} batches tried", batches, at_most));
  };
  // Without the search for batches there is nothing to wait for.
  std::optional<Interrupt> interrupt;
  if (options.max_batch) interrupt.emplace();
  const auto is_stopped = [&] { return interrupt && interrupt->came(); };
  const Comparison comparison = compare(scenario, std::cref(progress), tried, is_stopped);
  Result result{print(comparison, format, options), notes_on(scenario) + note, ExitCode::Ok};
  if (is_stopped()) result.notes += "stopped: largest batches of the strategies so far\n";
  if (format == Format::Table) result.text += suggestion(comparison, points.front());
  if (options.require_fit && std::ranges::none_of(comparison.rows, &Report::fits))
    result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark::cli
