// One row per option. What an optimizer's state is replaced by keeps its rule: AdamW in 8 bits is
// still AdamW, LoRA is another training and says so by its name.
#include "analysis/levers.h"

#include <fmt/format.h>

#include <array>

#include "traces/optimizer_of.h"

namespace tidemark {
namespace {

struct Row {
  std::string_view text;
  Relief relief;
  bool is_usual;
  bool (*applies)(const Scenario& scenario);
  void (*set)(Scenario& scenario);
};

bool is_form_possible(const StepOptions& step, OptimizerForm form) {
  const OptimizerRow& row = row_of(step.optimizer);
  if (update_form_of(step, row) == form) return false;
  return form == OptimizerForm::Fused ? row.fused.has_value()
                                      : update_form_of(step, row) == OptimizerForm::Foreach;
}

void use(Scenario& scenario, Optimizer optimizer) {
  scenario.step.optimizer = optimizer;
  scenario.step.optimizer_form.reset();
}

bool has_tokens(const Scenario& scenario) {
  return !scenario.step.loss &&
         scenario.step.head.value_or(head_of(scenario.model.config)) == Head::CausalLanguage;
}

constexpr std::array rows = {
    Row{"--optimizer-form fused", Relief::OptimizerStep, true,
        [](const Scenario& s) { return is_form_possible(s.step, OptimizerForm::Fused); },
        [](Scenario& s) { s.step.optimizer_form = OptimizerForm::Fused; }},
    Row{"--optimizer-form for-loop", Relief::OptimizerStep, false,
        [](const Scenario& s) { return is_form_possible(s.step, OptimizerForm::ForLoop); },
        [](Scenario& s) { s.step.optimizer_form = OptimizerForm::ForLoop; }},
    Row{"--update-in-backward", Relief::OptimizerStep, true,
        [](const Scenario& s) {
          return !s.step.update_in_backward && s.step.accumulate.count == 1;
        },
        [](Scenario& s) { s.step.update_in_backward = true; }},
    Row{"--optimizer adamw-8bit", Relief::OptimizerStep, true,
        [](const Scenario& s) { return s.step.optimizer == Optimizer::AdamW; },
        [](Scenario& s) { use(s, Optimizer::AdamW8bit); }},
    Row{"--optimizer paged-adamw-8bit", Relief::OptimizerStep, false,
        [](const Scenario& s) {
          return s.step.optimizer == Optimizer::AdamW || s.step.optimizer == Optimizer::AdamW8bit;
        },
        [](Scenario& s) { use(s, Optimizer::PagedAdamW8bit); }},
    Row{"--optimizer lion-8bit", Relief::OptimizerStep, false,
        [](const Scenario& s) { return s.step.optimizer == Optimizer::Lion; },
        [](Scenario& s) { use(s, Optimizer::Lion8bit); }},
    Row{"--tuning lora:r=8,targets=all", Relief::OptimizerStep, true,
        [](const Scenario& s) { return s.step.tuning.kind == Tuning::Kind::Full; },
        [](Scenario& s) { s.step.tuning = parse_tuning("lora:r=8,targets=all"); }},
    Row{"--loss chunked:8", Relief::Loss, false, has_tokens,
        [](Scenario& s) { s.step.loss = parse_token_loss("chunked:8"); }},
    Row{"--loss fused-linear", Relief::Loss, false, has_tokens,
        [](Scenario& s) { s.step.loss = parse_token_loss("fused-linear"); }},
    Row{"", Relief::Activations, false,
        [](const Scenario& s) { return s.step.batch % 2 == 0 && !s.step.update_in_backward; },
        [](Scenario& s) {
          s.step.batch /= 2;
          s.step.accumulate.count *= 2;
        }},
    Row{"--alloc-conf expandable_segments:True", Relief::Fragmentation, false,
        [](const Scenario& s) { return !s.allocator.expandable_segments; },
        [](Scenario& s) { s.allocator.expandable_segments = true; }}};

std::string text_of(const Row& row, const Scenario& changed) {
  if (!row.text.empty()) return std::string(row.text);
  return fmt::format("--batch {} --accumulate {}", changed.step.batch,
                     changed.step.accumulate.count);
}

}  // namespace

std::vector<Lever> levers_of(const Scenario& scenario) {
  std::vector<Lever> found;
  if (scenario.trace) return found;
  for (const Row& row : rows) {
    if (!row.applies(scenario)) continue;
    Scenario changed = scenario;
    row.set(changed);
    found.push_back({text_of(row, changed), row.relief, row.is_usual, changed});
  }
  return found;
}

}  // namespace tidemark
