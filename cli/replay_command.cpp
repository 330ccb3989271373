// `tidemark replay`: runs steps on a backend and prints measured numbers beside predicted ones.
#include <limits>

#include "cli/commands.h"
#include "cli/formats.h"
#include "cli/interrupt.h"
#include "cli/print_replay.h"
#include "cli/question.h"
#include "profiler/backends.h"
#include "simulator/export/chrome_trace.h"
#include "simulator/recording/predicted_recording.h"
#include "simulator/recording/recording_format.h"
#include "traces/error.h"

namespace tidemark::cli {
namespace {

Recording measured_recording(const ReplayAnswer& answer, const ReplayQuestion& question) {
  Recording recording = recording_of(answer.predicted, question.device);
  recording.source = Source::Measured;
  recording.device = answer.report.backend;
  recording.timeline = *answer.measured;
  return recording;
}

std::string print(const ReplayAnswer& answer, const ReplayQuestion& question, Format format,
                  const Options& options) {
  if (format == Format::Json) return replay_json(question, answer.report);
  if (!answer.report.applies) return replay_table(question, answer.report, style_of(options));
  switch (format) {
    case Format::Csv:
      return replay_csv(answer.report);
    case Format::Markdown:
      return replay_markdown(answer.report);
    default:
      return replay_table(question, answer.report, style_of(options));
  }
}

ReplayQuestion replay_question(const Options& options, Backend& backend, std::string& notes) {
  ReplayQuestion question;
  question.trace = std::make_shared<const Trace>(trace_of(options, notes));
  question.strategy = one_strategy(options);
  constexpr std::int64_t most = 1'000'000;
  if (options.steps) question.steps = parse_count(*options.steps, "--steps", 1, most);
  if (options.seed)
    question.seed = static_cast<std::uint64_t>(
        parse_count(*options.seed, "--seed", 0, std::numeric_limits<std::int64_t>::max()));
  question.checks_gradients = !options.no_check;
  if (options.data) question.data = data_of_file(*options.data, *question.trace);
  // Last, because it takes a second: nobody waits for it to be told of a typing error.
  question.device = options.device ? find_device(*options.device) : device_of(backend);
  return question;
}

}  // namespace

Result run_replay(const Options& options) {
  const Format format = format_of(options, for_replay);
  Result result;
  const std::unique_ptr<Backend> backend =
      find_backend(options.backend.value_or("cpu"), result.notes);
  const ReplayQuestion question = replay_question(options, *backend, result.notes);
  const Interrupt interrupt;
  const auto all = static_cast<std::size_t>(question.steps + question.warm_up +
                                            (question.checks_gradients ? 1 : 0));
  const Progress progress(options, "steps", all);
  const ReplayAnswer answer = replay(
      question, *backend,
      [&](std::int64_t done, std::int64_t) { progress(static_cast<std::size_t>(done)); },
      [&] { return interrupt.came(); });
  if (interrupt.came()) result.notes += "stopped: what was measured so far\n";
  const bool is_timeline = format == Format::Chrome || format == Format::Timeline;
  if (is_timeline && answer.report.applies && !answer.measured)
    throw InputError("stopped before the first step was timed: there is no timeline to write");
  if (answer.measured && format == Format::Chrome)
    result.text = chrome_trace(std::array{recording_of(answer.predicted, question.device),
                                          measured_recording(answer, question)});
  else if (answer.measured && format == Format::Timeline)
    result.text = write_recording_text(measured_recording(answer, question));
  else
    result.text = print(answer, question, format, options);
  return result;
}

}  // namespace tidemark::cli
