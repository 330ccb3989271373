// `tidemark explain`: the peak of a strategy, one tensor or op, or the saved tensors.
#include <fmt/format.h>

#include "analysis/export/chrome_trace.h"
#include "analysis/export/pictures.h"
#include "analysis/export/stacks.h"
#include "analysis/export/svg.h"
#include "analysis/recording/predicted_recording.h"
#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/graph_file.h"
#include "cli/commands/recorded.h"
#include "cli/commands/scenario.h"
#include "cli/reports/html_report.h"
#include "cli/reports/lever_listing.h"
#include "cli/reports/print_difference.h"
#include "cli/reports/print_explanation.h"
#include "cli/reports/saved_listing.h"
#include "importers/run_file.h"
#include "simulator/plan_json.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t usual_top = 12;

Result print_saved(const Options& options) {
  if (!options.item.empty() || options.strategies || options.plan || options.plan_out)
    throw UsageError(
        "--saved lists what vanilla saves (leave out the strategy, the plan and the name)");
  if (options.levers) throw UsageError("--saved is a report of its own (leave out --levers)");
  const Format format = format_of(options, for_explain, with_saved);
  Result result;
  const Trace trace = trace_of(options, result.notes);
  result.text = print_saved_groups(trace, format, style_of(options));
  return result;
}

Result print_levers(const Options& options) {
  if (!options.item.empty() || options.plan_out)
    throw UsageError("--levers is about the whole step (leave out the name and --plan-out)");
  const Format format = format_of(options, for_explain, with_levers);
  const Measure measure =
      options.measure ? parse_name(measures, "measure", *options.measure) : Measure::Allocated;
  Scenario scenario = scenario_of(options);
  scenario.strategies.clear();  // all others are tried
  const LeverTable table = try_levers(scenario, one_strategy(options));
  if (!table.now().applies)
    throw InputError(table.now().strategy + " does not apply: " + table.now().reason);
  Result result{print_levers(table, measure, format, style_of(options)), notes_on(scenario),
                ExitCode::Ok};
  if (options.require_fit && !table.now().fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

void require_applicable(const Explanation& explanation) {
  if (!explanation.report().applies)
    throw InputError(explanation.report().strategy +
                     " does not apply: " + explanation.report().reason);
}

std::string print_item(const Explanation& explanation, const Options& options, Format format) {
  require_applicable(explanation);
  const ItemFacts facts =
      find_item(explanation.evaluation, explanation.comparison.scenario.device, options.item);
  if (format == Format::Json) return item_json(explanation, facts);
  return item_table(explanation, facts, style_of(options));
}

// The step itself, for other programs and for the eye.
std::string export_step(const Explanation& explanation, Format format) {
  require_applicable(explanation);
  const Recording recording =
      recording_of(explanation.evaluation, explanation.comparison.scenario.device);
  const auto pictures = [&] {
    return exports::stacked({exports::memory_svg(recording), exports::icicle_svg(recording)});
  };
  return written_as(format,
                    {{Format::Svg, pictures},
                     {Format::Chrome,
                      [&] {
                        return exports::chrome_trace({&recording, 1});
                      }},
                     {Format::Timeline, [&] { return write_recording_text(recording); }},
                     {Format::Collapsed, [&] { return exports::collapsed_stacks(recording); }}});
}

std::string print_peak(const Explanation& explanation, const Options& options, Format format) {
  if (format == Format::Json) return explanation_json(explanation);
  if (format == Format::Html)
    return html_report({&explanation.comparison, 1}, explanation.report().strategy);
  if (format != Format::Table) return export_step(explanation, format);
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t top = options.top ? parse_count(*options.top, "--top", 0, most) : usual_top;
  return explanation_table(explanation, style_of(options), static_cast<std::size_t>(top));
}

void refuse_beside_others(const Options& options) {
  for (const auto& [is_given, name] :
       {std::pair(options.graph.has_value(), "--graph"), std::pair(options.saved, "--saved"),
        std::pair(options.levers, "--levers")})
    if (is_given)
      throw UsageError(fmt::format("--beside is a report of its own (leave out {})", name));
}

Result print_difference(const Options& options) {
  if (!options.item.empty() || options.plan_out)
    throw UsageError("--beside is about the whole step (leave out the name and --plan-out)");
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t top = options.top ? parse_count(*options.top, "--top", 0, most) : usual_top;
  const Format format = format_of(options, for_explain, with_beside);
  const RecordedRun run = read_beside(*options.beside);
  Scenario scenario = scenario_of(options);
  scenario.strategies = {one_strategy(options)};
  const Explanation explanation = explain(scenario);
  require_applicable(explanation);
  const BesideFacts facts{explanation, *options.beside, title(run.recording), run.recording.source,
                          beside::explain_difference(explanation.evaluation, scenario.device,
                                                     run.recording, run.requested)};
  Result result{format == Format::Json
                    ? difference_json(facts)
                    : difference_table(facts, style_of(options), static_cast<std::size_t>(top)),
                notes_on(scenario), ExitCode::Ok};
  if (options.require_fit && !explanation.report().fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

// Says what to do with the file, as one would type it.
std::string save_plan(const Explanation& explanation, const Options& options) {
  require_applicable(explanation);
  const std::string& path = *options.plan_out;
  write_file(path, write_plan(explanation.evaluation.planned));
  return fmt::format(
      "{}: written; edit it, then: tidemark compare {}{}{} --strategies {} --plan {}\n",
      printable(path, 200), shell_quoted(options.subject), as_typed(options, "step"),
      as_typed(options, "device"), reference_strategy().name, shell_quoted(path));
}

}  // namespace

Result run_explain(const Options& options) {
  if (importers::is_memory_snapshot(options.subject)) return explain_snapshot(options);
  if (importers::is_run_file(options.subject)) return explain_run(options);
  if (options.beside) refuse_beside_others(options);
  if (options.graph) return write_graph(options);
  if (options.block)
    throw UsageError("--block says which block --graph shows (give --graph FILE.dot as well)");
  if (options.saved) return print_saved(options);
  if (options.levers) return print_levers(options);
  if (options.measure)
    throw UsageError("--measure says what --levers lower (give --levers as well)");
  if (options.beside) return print_difference(options);
  const Format format = format_of(options, for_explain, options.item.empty() ? "" : of_an_item);
  Scenario scenario = scenario_of(options);
  scenario.strategies = {one_strategy(options)};
  if (options.plan_out) require_writable(*options.plan_out);
  const Explanation explanation = explain(scenario);
  Result result{options.item.empty() ? print_peak(explanation, options, format)
                                     : print_item(explanation, options, format),
                notes_on(scenario), ExitCode::Ok};
  if (options.plan_out) result.notes += save_plan(explanation, options);
  if (options.require_fit && !explanation.report().fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark::cli
