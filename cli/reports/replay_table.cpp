// A replay for people and as Markdown: predicted beside measured; gradients, loss and memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/reports/print_comparison.h"
#include "cli/reports/print_replay.h"
#include "cli/text/csv.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"

namespace tidemark::cli {
namespace {

struct ReplayUnits {
  SizeUnit size;
  TimeUnit time;
};

ReplayUnits units_of(const std::vector<ReplayField>& fields) {
  std::int64_t bytes = 0, time = 0;
  for (const ReplayField& field : fields) {
    std::int64_t& largest = field.is_time ? time : bytes;
    largest = std::max({largest, field.predicted, field.measured.value_or(0)});
  }
  return {SizeUnit(Bytes{bytes}), TimeUnit(Nanoseconds{time})};
}

std::string number_text(const ReplayUnits& units, bool is_time, std::int64_t number) {
  return is_time ? fmt::format("{} {}", units.time(Nanoseconds{number}), units.time.name())
                 : fmt::format("{} {}", units.size(Bytes{number}), units.size.name());
}

std::string difference_text(const ReplayField& field) {
  const std::int64_t measured = field.measured.value_or(0);
  if (field.predicted == field.measured) return "equal";
  if (field.predicted == 0 || measured == 0) return "";
  return change_text(static_cast<double>(measured) / static_cast<double>(field.predicted));
}

std::vector<std::vector<std::string>> rows_of(const profiler::ReplayReport& report) {
  const std::vector<ReplayField> fields = replay_fields(report);
  const ReplayUnits units = units_of(fields);
  std::vector<std::vector<std::string>> rows;
  for (const ReplayField& field : fields) {
    rows.push_back({fmt::format("{}{}", field.is_category ? "  " : "", field.title),
                    number_text(units, field.is_time, field.predicted),
                    field.measured ? number_text(units, field.is_time, *field.measured) : "–",
                    difference_text(field)});
  }
  return rows;
}

std::string gradient_text(const profiler::GradientComparison& gradients) {
  const profiler::GradientDifference& difference = gradients.difference;
  if (difference.bit_identical)
    return fmt::format("gradients: bit-identical to {}\n", gradients.reference);
  return fmt::format("gradients: within {:.2g} of {} (farthest: {}), {:.2g} of all together\n",
                     difference.largest, gradients.reference, difference.parameter,
                     difference.overall);
}

std::string loss_text(const profiler::ReplayReport& report) {
  constexpr std::size_t shown = 8;
  std::string text = "loss per step:";
  for (std::size_t i = 0; i < report.losses.size(); ++i) {
    if (i + 1 > shown && i + 1 < report.losses.size()) continue;
    if (i + 1 == report.losses.size() && i > shown)
      text += fmt::format(" … ({} not shown)", i - shown);
    text += fmt::format(" {:.4f}", report.losses[i]);
  }
  return text + "\n";
}

std::string memory_text(const profiler::ReplayReport& report) {
  std::string text = fmt::format("outside of the arena: {} for kernels' scratch and statistics",
                                 SizeUnit(report.workspace).with_unit(report.workspace));
  if (report.host_memory > Bytes{arena_alignment})
    text += fmt::format(", {} of host memory for offloaded tensors",
                        SizeUnit(report.host_memory).with_unit(report.host_memory));
  text += "\n";
  if (report.resident)
    text += fmt::format("the process's resident peak: {} above its baseline\n",
                        SizeUnit(*report.resident).with_unit(*report.resident));
  return text;
}

std::string heading(const profiler::ReplayScenario& scenario,
                    const profiler::ReplayReport& report) {
  return fmt::format("{} · {} · batch {} · {} on {}\npredicted for {}\n", scenario.trace->model,
                     report.strategy, scenario.trace->step.batch, report.backend,
                     report.description, report.device);
}

std::string percent_text(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", 100 * *share) : "–";
}

std::string hidden_text(const profiler::ReplayReport& report) {
  const std::optional<double> predicted = report.predicted.hidden_share();
  const std::optional<double> measured =
      report.steps_timed > 0 ? report.measured.hidden_share() : std::nullopt;
  if (!predicted && !measured) return "";
  return fmt::format("share of the recovery that is hidden: {} predicted, {} measured\n",
                     percent_text(predicted), percent_text(measured));
}

std::string after_table(const profiler::ReplayScenario& scenario,
                        const profiler::ReplayReport& report) {
  std::string text;
  if (report.steps_timed > 0) {
    const TimeUnit unit(report.slowest);
    const std::string before =
        scenario.warm_up == 1 ? "one more" : fmt::format("{} more", scenario.warm_up);
    text += fmt::format("measured step: median of {}, after {}; {} to {} {}\n", report.steps_timed,
                        before, unit(report.fastest), unit(report.slowest), unit.name());
    if (report.run_by_run)
      text += fmt::format(
          "with a clock before and after each run: {} {}, of which overlap and "
          "recovery are\n",
          unit(*report.run_by_run), unit.name());
  } else {
    text += "measured step: none; stopped before the first step was timed\n";
  }
  text += hidden_text(report);
  if (!report.losses.empty()) text += loss_text(report);
  if (report.gradients) text += gradient_text(*report.gradients);
  text += memory_text(report);
  return report.remark.empty() ? text : text + report.remark + "\n";
}

}  // namespace

std::string replay_table(const profiler::ReplayScenario& scenario,
                         const profiler::ReplayReport& report, const Style& style) {
  const auto wrapped = [&](const std::string& text) { return wrapped_text(text, style.width); };
  const std::string text = wrapped(heading(scenario, report));
  if (!report.applies)
    return text + wrapped(fmt::format("{} does not apply: {}\n", report.strategy,
                                      refusal_text(report.strategy, report.reason)));
  TextTable table;
  table.add_column({"", Align::Left});
  for (const char* title : {"predicted", "measured", "difference"}) table.add_column({title});
  for (const auto& row : rows_of(report)) table.add_row({{row[0]}, {row[1]}, {row[2]}, {row[3]}});
  return text + "\n" + table.draw(style) + "\n" + wrapped(after_table(scenario, report));
}

std::string replay_markdown(const profiler::ReplayReport& report) {
  std::string text = markdown_line({"", "predicted", "measured", "difference"}) +
                     markdown_line({"---", "---:", "---:", "---:"});
  for (const auto& row : rows_of(report)) text += markdown_line(row);
  return text;
}

}  // namespace tidemark::cli
