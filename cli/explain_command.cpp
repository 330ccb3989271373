// `tidemark explain`: the peak of a strategy, one tensor or op, or the saved tensors.
#include "cli/commands.h"
#include "cli/formats.h"
#include "cli/graph_file.h"
#include "cli/html_report.h"
#include "cli/print_explanation.h"
#include "cli/saved_listing.h"
#include "cli/scenario.h"
#include "simulator/export/chrome_trace.h"
#include "simulator/export/pictures.h"
#include "simulator/export/stacks.h"
#include "simulator/export/svg.h"
#include "simulator/recording/predicted_recording.h"
#include "simulator/recording/recording_format.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t usual_top = 12;

Result print_saved(const Options& options) {
  if (!options.item.empty() || options.strategies)
    throw UsageError("--saved lists what vanilla saves (leave out --strategy and the name)");
  const Format format = format_of(options, for_explain, with_saved);
  Result result;
  const Trace trace = trace_of(options, result.notes);
  result.text = print_saved_groups(trace, format, style_of(options));
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
  switch (format) {
    case Format::Svg:
      return exports::stacked({exports::memory_svg(recording), exports::icicle_svg(recording)});
    case Format::Chrome:
      return exports::chrome_trace({&recording, 1});
    case Format::Timeline:
      return write_recording_text(recording);
    default:
      return exports::collapsed_stacks(recording);
  }
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

}  // namespace

Result run_explain(const Options& options) {
  if (options.graph) return write_graph(options);
  if (options.block)
    throw UsageError("--block says which block --graph shows (give --graph FILE.dot as well)");
  if (options.saved) return print_saved(options);
  const Format format = format_of(options, for_explain, options.item.empty() ? "" : of_an_item);
  Scenario scenario = scenario_of(options);
  scenario.strategies = {one_strategy(options)};
  const Explanation explanation = explain(scenario);
  Result result{options.item.empty() ? print_peak(explanation, options, format)
                                     : print_item(explanation, options, format),
                notes_on(scenario.model), ExitCode::Ok};
  if (options.require_fit && !explanation.report().fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark::cli
