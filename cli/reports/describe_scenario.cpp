// Words for a scenario (model, step, device), and texts of a row that several formats share.
#include <fmt/format.h>

#include "base/quoted.h"
#include "cli/reports/print_comparison.h"
#include "cli/text/units_text.h"
#include "simulator/allocator/recorded_step.h"
#include "traces/step_fields.h"

namespace tidemark::cli {
namespace {

// How a step was recorded, if it was: it says less of itself than one that was asked for.
const RecordedUpdate* recorded(const Comparison& comparison) {
  const auto& trace = comparison.scenario.trace;
  return trace && trace->update ? &*trace->update : nullptr;
}

// A capture's buffers count as parameters that nothing trains: of LLaMA a few numbers of its
// rotation.
std::string trained_part(std::int64_t parameters, std::int64_t trainable) {
  const std::string part = count_text(trainable);
  if (part != count_text(parameters)) return part + " trained";
  return fmt::format("all but {} trained", count_text(parameters - trainable));
}

std::string describe_model(const Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  std::string trained = "all trained";
  if (scenario.step.tuning.kind != Tuning::Kind::Full)
    trained = fmt::format("{} trained ({})", count_text(comparison.trainable),
                          printable(to_text(scenario.step.tuning), 200));
  else if (recorded(comparison) && comparison.trainable < comparison.parameters)
    trained = trained_part(comparison.parameters, comparison.trainable);
  std::string text = fmt::format("{}: {} parameters, {}", printable(scenario.model.title, 200),
                                 count_text(comparison.parameters), trained);
  const ModelConfig& config = scenario.model.config;
  const bool is_usual = head_of(config) == heads_of(config).front();
  if (!scenario.trace && !is_usual) text += fmt::format(", head {}", to_string(head_of(config)));
  return text;
}

std::string describe_step(const Comparison& comparison) {
  const StepOptions step = resolved_step(comparison);
  std::string text = fmt::format("batch {}", step.batch);
  if (step.accumulate.count > 1) text += fmt::format(" × {} micro-batches", step.accumulate.count);
  if (comparison.tokens > 0) text += fmt::format(" × {} tokens", comparison.tokens);
  if (step.target_sequence) text += fmt::format(" to {}", *step.target_sequence);
  if (const RecordedUpdate* update = recorded(comparison))
    return text + fmt::format(" · {} · captured · {}", to_string(precision_of(step)),
                              printable(update->optimizer, 200));
  for (const StepShown shown : {StepShown::Always, StepShown::IfStated})
    for (const StepField& field : step_fields())
      if (field.shown == shown && (shown == StepShown::Always || is_stated(field, step)))
        text += " · " + in_words(field, *field.value(step));
  if (comparison.scenario.model.precision == step.precision)
    text += fmt::format(" · {} as its config says", to_string(*step.precision));
  return text;
}

// A size that is round in decimal units was typed in them: "24 GB = 22.35 GiB".
std::string budget_text(Bytes budget) {
  constexpr std::int64_t megabyte = 1'000'000, gigabyte = 1'000 * megabyte;
  if (budget.count % megabyte != 0 || budget.count % (1 << 20) == 0) return to_text(budget);
  const bool is_small = budget.count < gigabyte;
  const auto bytes = static_cast<double>(budget.count);
  return fmt::format("{} {} = {:.2f} {}",
                     bytes / static_cast<double>(is_small ? megabyte : gigabyte),
                     is_small ? "MB" : "GB", bytes / (is_small ? 1048576.0 : 1073741824.0),
                     is_small ? "MiB" : "GiB");
}

std::string describe_device(const Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  const bool has_settings = comparison.budget.allocator != allocator::AllocatorSettings();
  return fmt::format(
      "{}: {}, {} {} for tensors{}", scenario.device.title, to_text(scenario.device.capacity),
      scenario.budget ? "a budget of" : "of which", budget_text(comparison.budget.capacity),
      has_settings ? " · allocator set by --alloc-conf" : "");
}

}  // namespace

StepOptions resolved_step(const Comparison& comparison) {
  StepOptions step = comparison.scenario.step;
  step.precision = precision_of(step);
  step.attention = comparison.attention;
  if (comparison.scenario.trace) return step;
  const ModelConfig& config = comparison.scenario.model.config;
  step.head = head_of(config);
  if (const auto* bart = std::get_if<BartConfig>(&config); bart && bart->hears())
    step.target_sequence = written_tokens(*bart, step);
  return step;
}

std::vector<std::string> describe_scenario(const Comparison& comparison) {
  std::vector<std::string> lines = {describe_model(comparison), describe_step(comparison),
                                    describe_device(comparison)};
  lines.insert(lines.end(), comparison.notes.begin(), comparison.notes.end());
  return lines;
}

std::string origin_of_numbers(std::span<const Comparison> comparisons) {
  const auto is_recorded = [](const Comparison& comparison) {
    const Scenario& scenario = comparison.scenario;
    return scenario.trace && allocator::was_recorded(*scenario.trace, scenario.device);
  };
  const auto recorded = std::ranges::count_if(comparisons, is_recorded);
  if (recorded == 0) return "All numbers are predicted.";
  return fmt::format("All numbers are predicted but allocated and reserved of vanilla{}.",
                     recorded == std::ssize(comparisons) ? ", which the capture has recorded"
                                                         : " where the capture has recorded them");
}

std::string fits_text(const Report& row) {
  if (row.fits) return row.over_budget > Bytes{} ? "over budget" : "yes";
  if (row.short_by.count == 0) return "no, fragmented";
  return fmt::format("no, {} short", to_text(row.short_by));
}

std::string batches_text(const Report& row) {
  if (!row.batches) return "";
  const auto& [every, largest, cut_short] = *row.batches;
  const std::string least = fmt::format("{}{}", cut_short ? "≥ " : "", every);
  return every == largest ? least : fmt::format("{} ({})", least, largest);
}

std::string throughput_title(const Comparison& comparison) {
  for (const Report& row : comparison.rows)
    if (row.applies) return fmt::format("{}/s", row.throughput_unit);
  return "samples/s";
}

std::string throughput_text(const Report& row) {
  const double rate = row.throughput;
  return fmt::format("{:.{}f}", rate, rate >= 100 ? 0 : rate >= 10 ? 1 : 2);
}

std::string mfu_text(const Report& row) {
  return row.mfu == 0 ? "" : fmt::format("{:.1f} %", row.mfu * 100);
}

std::string refusal_text(std::string_view strategy, std::string_view reason) {
  const std::string name = std::string(strategy.substr(0, strategy.find(':'))) + ": ";
  return std::string(reason.starts_with(name) ? reason.substr(name.size()) : reason);
}

}  // namespace tidemark::cli
