// compare --replay: every strategy runs, and each number stands beside its prediction.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_replay.h"
#include "cli/text/csv.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"
#include "profiler/backends.h"

namespace tidemark::cli {
namespace {

using Replays = std::vector<profiler::ReplayReport>;

profiler::ReplayScenario replay_scenario(const Scenario& scenario,
                                         std::shared_ptr<const Trace> trace,
                                         const StrategySpec& strategy) {
  profiler::ReplayScenario replayed;
  replayed.trace = std::move(trace);
  replayed.strategy = strategy;
  replayed.device = scenario.device;
  replayed.steps = 3;
  return replayed;
}

std::string gradients_text(const profiler::ReplayReport& report) {
  if (!report.gradients) return "";
  if (report.gradients->difference.bit_identical) return "equal";
  const bool itself = report.gradients->is_rewired;
  return fmt::format("{:.1g}{}", report.gradients->difference.largest, itself ? " *" : "");
}

Nanoseconds longest(const Replays& replays) {
  Nanoseconds time{};
  for (const profiler::ReplayReport& report : replays)
    time = std::max({time, report.predicted.step, report.measured.step});
  return time;
}

Bytes largest(const Replays& replays) {
  Bytes bytes;
  for (const profiler::ReplayReport& report : replays)
    bytes = std::max({bytes, report.predicted.planned, report.measured.planned});
  return bytes;
}

enum class Unit : unsigned char { None, Size, Time };

struct Column {
  const char* title;
  Unit unit;
  int importance = 10;
  bool belongs_left = false;
};
constexpr std::array columns = {Column{"live", Unit::Size, 3},
                                Column{"measured", Unit::Size, 3, true},
                                Column{"arena", Unit::Size},
                                Column{"measured", Unit::Size, 10, true},
                                Column{"resident", Unit::Size, 2},
                                Column{"step", Unit::Time},
                                Column{"measured", Unit::Time, 10, true},
                                Column{"off", Unit::None},
                                Column{"recovery", Unit::Time, 4},
                                Column{"hidden", Unit::Time, 4, true},
                                Column{"gradient", Unit::None}};

std::vector<std::string> row_of(const profiler::ReplayReport& report, const SizeUnit& size,
                                const TimeUnit& time) {
  const profiler::ReplayNumbers &p = report.predicted, &m = report.measured;
  const double ratio = static_cast<double>(m.step.count()) /
                       static_cast<double>(std::max<std::int64_t>(1, p.step.count()));
  const bool is_measured = report.steps_timed > 0;
  const bool recovers = is_measured && p.recovery && p.recovery->alone > Nanoseconds{0};
  const auto recovery = [&](Nanoseconds RecoveryTime::*what) -> std::string {
    if (!recovers) return "";
    return m.recovery ? time((*m.recovery).*what) : "–";
  };
  return {size(p.live_peak),
          is_measured ? size(m.live_peak) : "–",
          size(p.planned),
          is_measured ? size(m.planned) : "–",
          report.resident ? size(*report.resident) : "",
          time(p.step),
          is_measured ? time(m.step) : "–",
          is_measured ? change_text(ratio) : "",
          recovery(&RecoveryTime::alone),
          recovery(&RecoveryTime::hidden),
          gradients_text(report)};
}

std::string refusals(const Replays& replays) {
  std::string text;
  for (const profiler::ReplayReport& report : replays)
    if (!report.applies)
      text +=
          fmt::format("  {}: {}\n", report.strategy, refusal_text(report.strategy, report.reason));
  return text.empty() ? "" : "\nDoes not apply:\n" + text;
}

std::string table(const Scenario& scenario, const Replays& replays, const Style& style) {
  const SizeUnit size(largest(replays));
  const TimeUnit time(longest(replays));
  TextTable table;
  table.add_column({"strategy", Align::Left});
  const auto unit_of = [&](const Column& column) -> std::string_view {
    if (column.unit == Unit::None) return "";
    return column.unit == Unit::Size ? size.name() : time.name();
  };
  for (const Column& column : columns)
    table.add_column({column.title, Align::Right, column.importance, std::string(unit_of(column)),
                      column.belongs_left});
  bool any_rewired = false;
  for (const profiler::ReplayReport& report : replays) {
    if (!report.applies) continue;
    std::vector<TextCell> cells = {{report.strategy}};
    for (std::string& cell : row_of(report, size, time)) cells.push_back({std::move(cell)});
    any_rewired |= report.gradients && report.gradients->is_rewired;
    table.add_row(std::move(cells));
  }
  const std::string head = fmt::format(
      "{} · batch {} · replayed on {}: {}\npredicted for {}; each measured number stands right of "
      "its prediction\n",
      scenario.model.name, scenario.step.batch, replays.front().backend,
      replays.front().description, scenario.device.title);
  std::string notes =
      "gradient: largest difference from vanilla's, relative to a parameter's gradient\n";
  if (any_rewired) notes += "* another network: compared with itself, all activations kept\n";
  return wrapped_text(head, style.width) + "\n" + table.draw(style, "--format csv has all") + "\n" +
         wrapped_text(notes + refusals(replays), style.width);
}

std::string markdown(const Replays& replays) {
  const SizeUnit size(largest(replays));
  const TimeUnit time(longest(replays));
  std::vector<std::string> heads = {"strategy"}, rule = {"---"};
  for (const Column& column : columns) heads.emplace_back(column.title), rule.emplace_back("---:");
  std::string text = markdown_line(heads) + markdown_line(rule);
  for (const profiler::ReplayReport& report : replays) {
    if (!report.applies) continue;
    std::vector<std::string> cells = row_of(report, size, time);
    cells.insert(cells.begin(), report.strategy);
    text += markdown_line(cells);
  }
  return text + fmt::format("\nSizes in {}, times in {}.\n", size.name(), time.name());
}

std::array<std::string, 4> gradient_cells(const profiler::ReplayReport& report) {
  if (!report.gradients) return {};
  const profiler::GradientDifference& difference = report.gradients->difference;
  return {report.gradients->reference, fmt::format("{}", difference.largest),
          difference.bit_identical ? "true" : "false", fmt::format("{}", difference.overall)};
}

/// Of all replays: one that does not apply knows fewer numbers.
std::vector<std::string_view> keys_of(const Replays& replays) {
  std::vector<std::string_view> keys;
  for (const profiler::ReplayReport& report : replays)
    for (const ReplayField& field : replay_fields(report))
      if (!field.is_category && std::ranges::find(keys, field.key) == keys.end())
        keys.push_back(field.key);
  return keys;
}

std::vector<std::string> csv_cells(const profiler::ReplayReport& report,
                                   const std::vector<std::string_view>& keys) {
  std::vector<std::string> cells = {report.strategy, report.applies ? "true" : "false"};
  const std::vector<ReplayField> fields = replay_fields(report);
  for (const std::string_view key : keys) {
    const auto field = std::ranges::find(fields, key, &ReplayField::key);
    const bool is_known = report.applies && field != fields.end();
    cells.push_back(is_known ? std::to_string(field->predicted) : "");
    cells.push_back(is_known && field->measured ? std::to_string(*field->measured) : "");
  }
  cells.push_back(report.resident ? std::to_string(report.resident->count) : "");
  for (std::string& cell : gradient_cells(report)) cells.push_back(std::move(cell));
  return cells;
}

std::string csv(const Replays& replays) {
  const std::vector<std::string_view> keys = keys_of(replays);
  std::vector<std::string> heads = {"strategy", "applies"};
  for (const std::string_view key : keys) {
    heads.push_back(fmt::format("predicted_{}", key));
    heads.push_back(fmt::format("measured_{}", key));
  }
  heads.insert(heads.end(), {"resident_peak_bytes", "gradient_reference", "gradient_max_rel_error",
                             "gradient_bit_identical", "gradient_rel_error"});
  std::string text = csv_line(heads);
  for (const profiler::ReplayReport& report : replays) text += csv_line(csv_cells(report, keys));
  return text;
}

// What says nothing about a replay is refused, not passed over.
void refuse_options_of_predictions(const Options& options) {
  const std::array given = {std::pair(options.max_batch, "--max-batch"),
                            std::pair(options.units, "--units"),
                            std::pair(options.require_fit, "--require-fit"),
                            std::pair(options.budget.has_value(), "--budget"),
                            std::pair(options.alloc_conf.has_value(), "--alloc-conf")};
  for (const auto& [is_given, name] : given)
    if (is_given)
      throw UsageError(fmt::format("{} is for predictions alone (leave out --replay)", name));
}

}  // namespace

Result run_replayed_comparison(const Options& options) {
  refuse_options_of_predictions(options);
  const Format format = format_of(options, for_compare, with_replay);
  Result result;
  const std::unique_ptr<Backend> backend = profiler::find_backend(*options.replay, result.notes);
  Scenario scenario = scenario_of(options);
  require_one_rank(scenario.step);
  result.notes += notes_on(scenario);
  if (!options.device) scenario.device = profiler::device_of(*backend);
  const auto trace = trace_of(scenario);
  const Progress progress(options, "strategies", scenario.strategies.size());
  const Interrupt interrupt;
  std::vector<profiler::ReplayScenario> scenarios;
  Replays replays;
  for (const StrategySpec& strategy : scenario.strategies) {
    scenarios.push_back(replay_scenario(scenario, trace, strategy));
    scenarios.back().warm_up = profiler::usual_warm_up(backend->ground());
    replays.push_back(
        profiler::replay(scenarios.back(), *backend, {}, [&] { return interrupt.came(); }).report);
    progress(replays.size());
    if (interrupt.came()) break;
  }
  if (interrupt.came())
    result.notes += fmt::format("stopped: {} of {} strategies were begun\n", replays.size(),
                                scenario.strategies.size());
  result.text = written_as(
      format, {{Format::Json, [&] { return replays_json(scenarios, replays); }},
               {Format::Csv, [&] { return csv(replays); }},
               {Format::Markdown, [&] { return markdown(replays); }},
               {Format::Table, [&] { return table(scenario, replays, style_of(options)); }}});
  return result;
}

}  // namespace tidemark::cli
