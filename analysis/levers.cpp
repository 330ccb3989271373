// One row per option. What an optimizer's state is replaced by keeps its rule: AdamW in 8 bits is
// still AdamW, LoRA is another training and says so by its name.
#include "analysis/levers.h"

#include <fmt/format.h>

#include <array>

#include "traces/models/liger.h"
#include "traces/models/model_config.h"
#include "traces/optimizer_of.h"

namespace tidemark {
namespace {

constexpr std::string_view eight_bits = "moments are rounded to 8 bits";

struct Row {
  std::string_view text, does, caution;
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
    Row{"--optimizer-form fused", "one kernel updates the parameters, without temporaries", "",
        Relief::OptimizerStep, true,
        [](const Scenario& s) { return is_form_possible(s.step, OptimizerForm::Fused); },
        [](Scenario& s) { s.step.optimizer_form = OptimizerForm::Fused; }},
    Row{"--optimizer-form for-loop",
        "updates one tensor after the other: temporaries of one at a time", "",
        Relief::OptimizerStep, false,
        [](const Scenario& s) { return is_form_possible(s.step, OptimizerForm::ForLoop); },
        [](Scenario& s) { s.step.optimizer_form = OptimizerForm::ForLoop; }},
    Row{"--update-in-backward", "uses and frees each gradient as soon as it is complete",
        "gradients can be neither clipped by their common norm nor accumulated",
        Relief::OptimizerStep, true,
        [](const Scenario& s) {
          return !s.step.update_in_backward && s.step.accumulate.count == 1;
        },
        [](Scenario& s) { s.step.update_in_backward = true; }},
    Row{"--optimizer adamw-8bit", "keeps AdamW's moments in 8 bits, with a factor per block",
        eight_bits, Relief::OptimizerStep, true,
        [](const Scenario& s) { return s.step.optimizer == Optimizer::AdamW; },
        [](Scenario& s) { use(s, Optimizer::AdamW8bit); }},
    Row{"--optimizer paged-adamw-8bit", "8-bit moments that move to the host when memory is short",
        eight_bits, Relief::OptimizerStep, false,
        [](const Scenario& s) {
          return s.step.optimizer == Optimizer::AdamW || s.step.optimizer == Optimizer::AdamW8bit;
        },
        [](Scenario& s) { use(s, Optimizer::PagedAdamW8bit); }},
    Row{"--optimizer lion-8bit", "keeps Lion's momentum in 8 bits, with a factor per block",
        eight_bits, Relief::OptimizerStep, false,
        [](const Scenario& s) { return s.step.optimizer == Optimizer::Lion; },
        [](Scenario& s) { use(s, Optimizer::Lion8bit); }},
    Row{"--tuning lora:r=8,targets=all", "freezes the weights and trains adapters of rank 8",
        "trains adapters only", Relief::OptimizerStep, true,
        [](const Scenario& s) { return s.step.tuning.kind == Tuning::Kind::Full; },
        [](Scenario& s) { s.step.tuning = parse_tuning("lora:r=8,targets=all"); }},
    Row{"--loss chunked:8", "makes logits and loss in 8 parts, and each again in the backward", "",
        Relief::Loss, true, has_tokens,
        [](Scenario& s) { s.step.loss = parse_token_loss("chunked:8"); }},
    Row{"--loss fused-linear",
        "makes the gradients of the logits part by part with the loss (Liger)", "", Relief::Loss,
        true, has_tokens, [](Scenario& s) { s.step.loss = parse_token_loss("fused-linear"); }},
    Row{"--loss fused",
        "writes the gradient of the logits over them, without fp32 copies (Transformer Engine)", "",
        Relief::Loss, true,
        [](const Scenario& s) {
          return has_tokens(s) && find_framework(s.step.framework).transformer_engine;
        },
        [](Scenario& s) { s.step.loss = parse_token_loss("fused"); }},
    Row{"--liger",
        "Liger's kernels keep less beside norms, SwiGLU, rotations and the loss, and run faster",
        "", Relief::Activations, false,
        [](const Scenario& s) {
          const auto* config = std::get_if<DecoderConfig>(&s.model.config);
          return !s.step.liger && !find_framework(s.step.framework).megatron && config &&
                 has_tokens(s) && liger_defect(*config).empty();
        },
        [](Scenario& s) { s.step.liger = true; }},
    Row{"--base nf4", "stores the frozen weights in 4 bits (QLoRA)",
        "frozen weights are rounded to 4 bits", Relief::OptimizerStep, false,
        [](const Scenario& s) {
          const bool has_adapters = s.step.tuning.kind == Tuning::Kind::Lora ||
                                    s.step.tuning.kind == Tuning::Kind::LoraFa;
          return has_adapters && !s.step.base;
        },
        [](Scenario& s) { s.step.base = BaseWeights::Nf4; }},
    Row{"--precision amp-bf16", "matrix products in bf16, and half of the bytes that they keep",
        "activations and gradients are rounded to bf16", Relief::Activations, false,
        [](const Scenario& s) {
          const Precision now = precision_of(s.step);
          return now == Precision::Fp32 || now == Precision::Tf32;
        },
        [](Scenario& s) { s.step.precision = Precision::AmpBf16; }},
    Row{"--attention sdpa", "a fused kernel, which keeps no map of scores", "", Relief::Activations,
        false, [](const Scenario& s) { return s.step.attention == Attention::Math; },
        [](Scenario& s) { s.step.attention = Attention::Sdpa; }},
    Row{"--shard fsdp2", "cuts parameters, gradients and states among the dp ranks", "",
        Relief::OptimizerStep, false,
        [](const Scenario& s) {
          const auto now = sharing_of(s.step);
          return now && now->kind == Sharding::Kind::Ddp;
        },
        [](Scenario& s) { s.step.shard = parse_sharding("fsdp2"); }},
    Row{"", "half of the samples at a time; their gradients add up", "", Relief::Activations, false,
        [](const Scenario& s) { return s.step.batch % 2 == 0 && !s.step.update_in_backward; },
        [](Scenario& s) {
          s.step.batch /= 2;
          s.step.accumulate.count *= 2;
        }},
    Row{"--alloc-conf expandable_segments:True",
        "segments grow instead of lying beside each other with gaps", "", Relief::Fragmentation,
        false, [](const Scenario& s) { return !s.allocator.expandable_segments; },
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
    found.push_back(
        {text_of(row, changed), row.does, row.caution, row.relief, row.is_usual, row.set, changed});
  }
  return found;
}

}  // namespace tidemark
