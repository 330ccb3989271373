#include <csignal>
#include <limits>

#include "cli/commands.h"
#include "cli/print_replay.h"
#include "cli/question.h"
#include "profiler/backends.h"
#include "simulator/export/chrome_trace.h"
#include "simulator/predicted_recording.h"
#include "simulator/recording_format.h"

namespace tidemark {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// The first Ctrl-C ends the replay after the step that runs; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard() : before_(std::signal(SIGINT, on_interrupt)) {}
  ~InterruptGuard() { std::signal(SIGINT, before_); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static void on_interrupt(int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);
  }
  void (*before_)(int);
};

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

ReplayQuestion replay_question(const Options& options, Backend& backend) {
  ReplayQuestion question;
  question.trace = std::make_shared<const Trace>(trace_of(options));
  question.strategy = parse_strategy(options.strategy.value_or("vanilla"));
  question.device = options.device ? find_device(*options.device) : device_of(backend);
  constexpr std::int64_t most = 1'000'000;
  if (options.steps) question.steps = parse_count(*options.steps, "steps", 1, most);
  if (options.seed)
    question.seed = static_cast<std::uint64_t>(
        parse_count(*options.seed, "seed", 0, std::numeric_limits<std::int64_t>::max()));
  question.checks_gradients = !options.no_check;
  if (options.data) question.data = data_of_file(*options.data, *question.trace);
  return question;
}

}  // namespace

Result run_replay(const Options& options) {
  const Format format = format_among(options, {Format::Table, Format::Json, Format::Csv,
                                               Format::Markdown, Format::Timeline, Format::Chrome});
  Result result;
  const std::unique_ptr<Backend> backend =
      find_backend(options.backend.value_or("cpu"), result.notes);
  const ReplayQuestion question = replay_question(options, *backend);
  const InterruptGuard guard;
  const auto all = static_cast<std::size_t>(question.steps + question.warm_up +
                                            (question.checks_gradients ? 1 : 0));
  const Progress progress(options, "steps", all);
  const ReplayAnswer answer = replay(
      question, *backend,
      [&](std::int64_t done, std::int64_t) { progress(static_cast<std::size_t>(done)); },
      [] { return interrupted != 0; });
  if (interrupted != 0) result.notes += "stopped: what was measured so far\n";
  if (answer.measured && format == Format::Chrome)
    result.text = chrome_trace(std::array{recording_of(answer.predicted, question.device),
                                          measured_recording(answer, question)});
  else if (answer.measured && format == Format::Timeline)
    result.text = write_recording_text(measured_recording(answer, question));
  else
    result.text = print(answer, question, format, options);
  return result;
}

}  // namespace tidemark
