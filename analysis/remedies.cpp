// Tries a fused update, one in the backward, an 8-bit optimizer and LoRA where the optimizer's step
// makes the peak.
#include "analysis/remedies.h"

#include <array>

#include "base/error.h"
#include "traces/optimizer_of.h"

namespace tidemark {
namespace {

struct Option {
  std::string_view text;
  bool (*is_new)(const StepOptions& step);
  void (*set)(StepOptions& step);
};

bool can_be_fused(const StepOptions& step) {
  const OptimizerRow& row = row_of(step.optimizer);
  return row.fused && update_form_of(step, row) != OptimizerForm::Fused;
}

constexpr std::array for_optimizer_steps = {
    Option{"--optimizer-form fused", can_be_fused,
           [](StepOptions& step) { step.optimizer_form = OptimizerForm::Fused; }},
    Option{"--update-in-backward",
           [](const StepOptions& step) {
             return !step.update_in_backward && step.accumulate.count == 1;
           },
           [](StepOptions& step) { step.update_in_backward = true; }},
    Option{"--optimizer adamw-8bit",
           [](const StepOptions& step) { return step.optimizer == Optimizer::AdamW; },
           [](StepOptions& step) {
             step.optimizer = Optimizer::AdamW8bit;
             step.optimizer_form.reset();
           }},
    Option{"--tuning lora:r=8,targets=all",
           [](const StepOptions& step) { return step.tuning.kind == Tuning::Kind::Full; },
           [](StepOptions& step) { step.tuning = parse_tuning("lora:r=8,targets=all"); }}};

// Nothing where it does not apply, or where a plan file does not fit the changed step.
std::optional<Report> report_of(const Scenario& scenario, const MemoryBudget& budget,
                                const StrategySpec& strategy) {
  try {
    const Report report = evaluate(trace_of(scenario), strategy, scenario.device, budget).report;
    return report.applies ? std::optional(report) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Remedy> find_remedies(const Scenario& scenario, const MemoryBudget& budget,
                                  const StrategySpec& strategy, const Report& row) {
  std::vector<Remedy> found;
  if (scenario.trace || row.peak_maker != PeakMaker::OptimizerStep) return found;
  for (const Option& option : for_optimizer_steps) {
    if (!option.is_new(scenario.step)) continue;
    Scenario changed = scenario;
    option.set(changed.step);
    const std::optional<Report> report = report_of(changed, budget, strategy);
    if (report && report->allocated_peak < row.allocated_peak)
      found.push_back({std::string(option.text), report->allocated_peak, report->fits});
  }
  return found;
}

}  // namespace tidemark
