// compare --replay: every strategy runs, and each number stands beside its prediction.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/csv.h"
#include "cli/interrupt.h"
#include "cli/print_replay.h"
#include "cli/question.h"
#include "cli/text_table.h"
#include "cli/units_text.h"
#include "profiler/backends.h"

namespace tidemark {
namespace {

using Replays = std::vector<ReplayReport>;

ReplayQuestion replay_question(const Question& question, std::shared_ptr<const Trace> trace,
                               const StrategySpec& strategy) {
  ReplayQuestion replayed;
  replayed.trace = std::move(trace);
  replayed.strategy = strategy;
  replayed.device = question.device;
  replayed.steps = 3;
  return replayed;
}

std::string gradients_text(const ReplayReport& report) {
  if (!report.gradients) return "";
  if (report.gradients->difference.bit_identical) return "equal";
  const bool itself = report.gradients->reference != "vanilla";
  return fmt::format("{:.1g}{}", report.gradients->difference.largest, itself ? " *" : "");
}

Nanoseconds longest(const Replays& replays) {
  Nanoseconds time{};
  for (const ReplayReport& report : replays)
    time = std::max({time, report.predicted.step, report.measured.step});
  return time;
}

Bytes largest(const Replays& replays) {
  Bytes bytes;
  for (const ReplayReport& report : replays)
    bytes = std::max({bytes, report.predicted.planned, report.measured.planned});
  return bytes;
}

constexpr std::array titles = {"live",     "measured", "arena",    "measured", "resident", "step",
                               "measured", "off",      "recovery", "hidden",   "gradient"};

std::vector<std::string> row_of(const ReplayReport& report, const SizeUnit& size,
                                const TimeUnit& time) {
  const ReplayNumbers &p = report.predicted, &m = report.measured;
  const double ratio = static_cast<double>(m.step.count()) /
                       static_cast<double>(std::max<std::int64_t>(1, p.step.count()));
  const bool is_measured = report.steps_timed > 0;
  const bool recovers = is_measured && p.recompute > Nanoseconds{0};
  return {size(p.live_peak),
          is_measured ? size(m.live_peak) : "–",
          size(p.planned),
          is_measured ? size(m.planned) : "–",
          report.resident ? size(*report.resident) : "",
          time(p.step),
          is_measured ? time(m.step) : "–",
          is_measured ? change_text(ratio) : "",
          recovers ? time(m.recompute) : "",
          recovers ? time(m.hidden_recompute) : "",
          gradients_text(report)};
}

std::string refusals(const Replays& replays) {
  std::string text;
  for (const ReplayReport& report : replays)
    if (!report.applies) text += fmt::format("  {}: {}\n", report.strategy, report.reason);
  return text.empty() ? "" : "\nDoes not apply:\n" + text;
}

std::string table(const Question& question, const Replays& replays, const Style& style) {
  const SizeUnit size(largest(replays));
  const TimeUnit time(longest(replays));
  TextTable table;
  table.add_column({"strategy", Align::Left});
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const bool is_size = i < 5, is_time = (i >= 5 && i < 7) || i == 8 || i == 9;
    table.add_column({titles[i], Align::Right, 10,
                      std::string(is_size   ? size.name()
                                  : is_time ? time.name()
                                            : std::string_view())});
  }
  bool any_rewired = false;
  for (const ReplayReport& report : replays) {
    if (!report.applies) continue;
    std::vector<TextCell> cells = {{report.strategy}};
    for (std::string& cell : row_of(report, size, time)) cells.push_back({std::move(cell)});
    any_rewired |= report.gradients && report.gradients->reference != "vanilla";
    table.add_row(std::move(cells));
  }
  std::string text = fmt::format(
      "{} · batch {} · replayed on {}: {}\npredicted for {}; each measured number stands right of "
      "its prediction\n\n{}",
      question.model.name, question.step.batch, replays.front().backend,
      replays.front().description, question.device.title, table.draw(style));
  text += "\ngradient: largest difference from vanilla's, relative to a parameter's gradient\n";
  if (any_rewired) text += "* another network: compared with itself, all activations kept\n";
  return text + refusals(replays);
}

std::string markdown(const Replays& replays) {
  const SizeUnit size(largest(replays));
  const TimeUnit time(longest(replays));
  std::vector<std::string> heads = {"strategy"}, rule = {"---"};
  for (const char* title : titles) heads.emplace_back(title), rule.emplace_back("---:");
  std::string text = markdown_line(heads) + markdown_line(rule);
  for (const ReplayReport& report : replays) {
    if (!report.applies) continue;
    std::vector<std::string> cells = row_of(report, size, time);
    cells.insert(cells.begin(), report.strategy);
    text += markdown_line(cells);
  }
  return text + fmt::format("\nSizes in {}, times in {}.\n", size.name(), time.name());
}

std::string csv(const Replays& replays) {
  std::string text;
  for (const ReplayReport& report : replays) {
    std::vector<std::string> heads = {"strategy", "applies"},
                             cells = {report.strategy, report.applies ? "true" : "false"};
    for (const ReplayField& field : replay_fields(report)) {
      if (field.is_category) continue;
      heads.push_back(fmt::format("predicted_{}", field.key));
      heads.push_back(fmt::format("measured_{}", field.key));
      cells.push_back(report.applies ? std::to_string(field.predicted) : "");
      cells.push_back(report.applies && field.measured ? std::to_string(*field.measured) : "");
    }
    if (text.empty()) text = csv_line(heads);
    text += csv_line(cells);
  }
  return text;
}

}  // namespace

Result run_replayed_comparison(const Options& options) {
  const Format format = format_of(options);
  Result result;
  const std::unique_ptr<Backend> backend = find_backend(*options.replay, result.notes);
  Question question = question_of(options);
  if (!options.device) question.device = device_of(*backend);
  const auto trace =
      question.trace ? question.trace
                     : std::make_shared<const Trace>(build_trace(question.model, question.step));
  const Progress progress(options, "strategies", question.strategies.size());
  const Interrupt interrupt;
  std::vector<ReplayQuestion> questions;
  Replays replays;
  for (const StrategySpec& strategy : question.strategies) {
    questions.push_back(replay_question(question, trace, strategy));
    replays.push_back(
        replay(questions.back(), *backend, {}, [&] { return interrupt.came(); }).report);
    progress(replays.size());
    if (interrupt.came()) break;
  }
  if (interrupt.came())
    result.notes += fmt::format("stopped: {} of {} strategies were begun\n", replays.size(),
                                question.strategies.size());
  switch (format) {
    case Format::Json:
      result.text = replays_json(questions, replays);
      break;
    case Format::Csv:
      result.text = csv(replays);
      break;
    case Format::Markdown:
      result.text = markdown(replays);
      break;
    default:
      result.text = table(question, replays, style_of(options));
  }
  return result;
}

}  // namespace tidemark
