// `tidemark replay`: runs steps on a backend and prints measured numbers beside predicted ones.
#include <fmt/format.h>

#include <limits>

#include "analysis/export/chrome_trace.h"
#include "analysis/recording/predicted_recording.h"
#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_replay.h"
#include "profiler/backends.h"

namespace tidemark::cli {
namespace {

Recording measured_recording(const profiler::ReplayEvaluation& evaluation,
                             const profiler::ReplayScenario& scenario) {
  Recording recording = recording_of(evaluation.predicted, scenario.device);
  recording.source = Source::Measured;
  recording.device = evaluation.report.backend;
  recording.timeline = *evaluation.measured;
  return recording;
}

std::string print(const profiler::ReplayEvaluation& evaluation,
                  const profiler::ReplayScenario& scenario, Format format, const Options& options) {
  const profiler::ReplayReport& report = evaluation.report;
  const auto table = [&] { return replay_table(scenario, report, style_of(options)); };
  // Without numbers, Markdown is a sentence as well.
  if (!report.applies && format == Format::Markdown) return table();
  return written_as(format, {{Format::Json, [&] { return replay_json(scenario, report); }},
                             {Format::Csv, [&] { return replay_csv(report); }},
                             {Format::Markdown, [&] { return replay_markdown(report); }},
                             {Format::Table, table}});
}

profiler::ReplayScenario replay_scenario(const Options& options, Backend& backend,
                                         std::string& notes) {
  profiler::ReplayScenario scenario;
  scenario.trace = std::make_shared<const Trace>(trace_of(options, notes));
  require_one_rank(scenario.trace->step);
  scenario.strategy = one_strategy(options);
  notes += notes_on(scenario.strategy, scenario.trace->model);
  constexpr std::int64_t most = 1'000'000;
  scenario.warm_up = profiler::usual_warm_up(backend.ground());
  if (options.steps) scenario.steps = parse_count(*options.steps, "--steps", 1, most);
  if (options.seed)
    scenario.seed = static_cast<std::uint64_t>(
        parse_count(*options.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max()));
  scenario.checks_gradients = !options.no_check;
  if (options.data) scenario.data = profiler::data_of_file(*options.data, *scenario.trace);
  // Last, because it takes a second: nobody waits for it to be told of a typing error.
  scenario.device = options.device ? find_device(*options.device) : profiler::device_of(backend);
  return scenario;
}

}  // namespace

Result run_replay(const Options& options) {
  const Format format = format_of(options, for_replay);
  Result result;
  const std::unique_ptr<Backend> backend =
      profiler::find_backend(options.backend.value_or("cpu"), result.notes);
  const profiler::ReplayScenario scenario = replay_scenario(options, *backend, result.notes);
  const Interrupt interrupt;
  std::optional<Progress> progress;
  const profiler::ReplayEvaluation evaluation = profiler::replay(
      scenario, *backend,
      [&](std::int64_t done, std::int64_t all) {
        if (!progress) progress.emplace(options, "steps", static_cast<std::size_t>(all));
        (*progress)(static_cast<std::size_t>(done));
      },
      [&] { return interrupt.came(); });
  if (interrupt.came()) result.notes += "stopped: what was measured so far\n";
  const bool is_timeline = format == Format::Chrome || format == Format::Timeline;
  if (!evaluation.report.applies && (is_timeline || format == Format::Csv)) {
    const std::string refusal =
        fmt::format("{} does not apply: {}", evaluation.report.strategy,
                    refusal_text(evaluation.report.strategy, evaluation.report.reason));
    if (is_timeline) throw InputError(refusal);
    result.notes += refusal + "\n";
  }
  if (is_timeline && !evaluation.measured)
    throw InputError("stopped before the first step was timed: there is no timeline to write");
  if (evaluation.measured && format == Format::Chrome)
    result.text =
        exports::chrome_trace(std::array{recording_of(evaluation.predicted, scenario.device),
                                         measured_recording(evaluation, scenario)});
  else if (evaluation.measured && format == Format::Timeline)
    result.text = write_recording_text(measured_recording(evaluation, scenario));
  else
    result.text = print(evaluation, scenario, format, options);
  return result;
}

}  // namespace tidemark::cli
