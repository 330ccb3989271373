// What a step is asked with and its model does not have, or not beside the rest.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "traces/engine_linear.h"
#include "traces/expert_ops.h"
#include "traces/linear_names.h"
#include "traces/models/chunked_loss.h"
#include "traces/models/liger.h"
#include "traces/models/preference_loss.h"
#include "traces/step_fields.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

void require_known_prompt(const Trace& trace) {
  const Tuning::Kind kind = trace.step.tuning.kind;
  if (kind != Tuning::Kind::Prompt && kind != Tuning::Kind::Prefix) return;
  const bool is_prompt = kind == Tuning::Kind::Prompt;
  const auto is_learned = [&](const Tensor& tensor) {
    return tensor.trainable && tensor.name.starts_with(is_prompt ? "prompt." : "prefix.");
  };
  const auto is_other = [&](const Tensor& tensor) {
    return tensor.trainable && !is_learned(tensor);
  };
  if (std::ranges::none_of(trace.tensors, is_learned) ||
      std::ranges::any_of(trace.tensors, is_other))
    throw UsageError(fmt::format(
        "tuning: {} are known in front of decoders that predict words, which {} does not "
        "(take lora:r=8,targets=q,v)",
        is_prompt ? "prompts" : "prefixes", trace.model));
  if (is_prompt) return;
  const auto sees_no_mask = [&](const Op& op) {
    return op.kind == OpKind::FlashAttention && op.inputs == 3;
  };
  if (std::ranges::any_of(trace.ops, sees_no_mask))
    throw UsageError(
        "tuning: a prefix makes a mask wider than high, which the kernel of --attention flash and "
        "those of older frameworks are not handed here (take --attention math)");
}

// "blocks.0.attn.q.weight" → "blocks.0.attn.q"
std::string_view owner_of(std::string_view parameter) {
  return parameter.substr(0, std::min(parameter.rfind('.'), parameter.size()));
}

// The last names of linears that adapters could be beside, in the model's order. Heads, which are
// trained as they are, and routers of experts multiply in another way.
std::vector<std::string_view> possible_targets(const Trace& trace) {
  std::unordered_set<std::string_view> products;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::Linear || op.kind == OpKind::Opaque) products.insert(op.name);
  std::vector<std::string_view> leaves;
  for (const Tensor& tensor : trace.tensors) {
    if (tensor.category != Category::Parameter || tensor.shape.rank() != 2 || tensor.trainable ||
        leaf_of(tensor.name) != "weight" || !products.contains(owner_of(tensor.name)))
      continue;
    const std::string_view leaf = leaf_of(owner_of(tensor.name));
    if (leaf == "lm_head" || leaf == "router" || leaf.starts_with("lora_")) continue;
    if (std::ranges::find(leaves, leaf) == leaves.end()) leaves.push_back(leaf);
  }
  return leaves;
}

void require_known_targets(const Trace& trace) {
  const Tuning& tuning = trace.step.tuning;
  const bool freezes = tuning.kind == Tuning::Kind::Frozen;
  if (has_adapters(tuning) && tuning.targets.empty())
    throw UsageError(fmt::format(
        "tuning: peft takes no linears of {} by itself (name them, as in lora:r=8,targets=q,v; "
        "known: {})",
        trace.model, fmt::join(possible_targets(trace), ", ")));
  for (const std::string& target : tuning.targets) {
    const std::vector<std::string_view> named = linears_named(target, trace.family);
    const auto matches = [&](const Tensor& tensor) {
      if (tensor.category != Category::Parameter) return false;
      if (freezes) return matches_glob(tensor.name, target);
      return std::ranges::any_of(named, [&](std::string_view linear) {
        const std::string adapter = fmt::format(".{}.lora_a.weight", linear);
        return ("." + tensor.name).ends_with(adapter);
      });
    };
    if (named.front() == "all" || std::ranges::any_of(trace.tensors, matches)) continue;
    if (freezes)
      throw UsageError(
          fmt::format("tuning: no parameter of {} is called '{}' (tidemark trace lists them)",
                      trace.model, target.substr(0, 64)));
    if (named.front() == "lm_head")
      throw UsageError(
          "tuning: an adapter beside the head is not modelled (train a copy of it: save=lm_head)");
    throw UsageError(unknown_name("linear", target, possible_targets(trace)));
  }
}

void require_known_copies(const Trace& trace) {
  for (const std::string& module : trace.step.tuning.whole) {
    const std::vector<std::string_view> named = linears_named(module, trace.family);
    std::vector<std::string_view> modules;
    bool is_known = false;
    for (const Tensor& tensor : trace.tensors) {
      if (tensor.category != Category::Parameter || tensor.name.find(".lora_") != std::string::npos)
        continue;
      const std::string_view name = leaf_of(owner_of(tensor.name));
      is_known |= tensor.trainable && std::ranges::find(named, name) != named.end();
      if (name != "original" && std::ranges::find(modules, name) == modules.end())
        modules.push_back(name);
    }
    if (!is_known) throw UsageError(unknown_name("module", module, modules));
  }
}

}  // namespace

void require_used_options(const Trace& trace) {
  for (const StepField& field : step_fields())
    if (const std::string defect = field.defect(trace.step); !defect.empty())
      throw UsageError(fmt::format("{}: {}", long_name(field.switches.front().names), defect));
  require_known_prompt(trace);
  require_known_targets(trace);
  require_known_copies(trace);
  const Tuning::Kind tuning = trace.step.tuning.kind;
  if (trace.step.base && tuning != Tuning::Kind::Lora && tuning != Tuning::Kind::LoraFa)
    throw UsageError(
        fmt::format("--base: weights in {} cannot be trained; need adapters (--tuning lora:r=8,…)",
                    base_weights[static_cast<std::size_t>(*trace.step.base)].name));
  if (trace.step.base && trace.step.tuning.magnitudes)
    throw UsageError(
        "--base: what DoRA makes of weights in few bits is not known (leave out dora)");
  const auto is_coded = [](const OpaqueRow& row) { return row.math && !is_floating(*row.math); };
  const bool is_first_stage_wide =
      trace.step.mesh[Axis::Pipeline] > 1 && trace.step.linears && trace.step.linears->first > 0;
  if (trace.step.linears && !is_first_stage_wide &&
      std::ranges::none_of(trace.opaque_rows, is_coded))
    throw UsageError(fmt::format(
        "--linears: no linear of {} in front of its head has both sizes in multiples of {}, as "
        "{} products need them (leave it out)",
        trace.model, engine_codes(trace.step.linears->math).group,
        to_string(trace.step.linears->math)));
  if (trace.step.linears && trace.step.tuning.magnitudes)
    throw UsageError(
        "--linears: what DoRA makes of linears that multiply codes is not known (leave out dora)");
  const auto scores_words = [](const OpaqueRow& row) {
    return is_chunked_loss(row) || is_preference_loss(row);
  };
  const auto is_fused = [](const Op& op) { return op.kind == OpKind::VocabularyLoss; };
  const bool is_elsewhere = trace.step.mesh[Axis::Pipeline] > 1;  // on the last stage
  const bool is_scored = has_fused_loss(trace.step) || has_native_loss(trace.step)
                             ? is_elsewhere || std::ranges::any_of(trace.ops, is_fused)
                             : std::ranges::any_of(trace.opaque_rows, scores_words);
  if (trace.step.loss && !is_scored && is_elsewhere)
    throw UsageError(fmt::format(
        "--loss: with pipeline stages {} is not simulated (take fused or native, or pp=1)",
        to_text(*trace.step.loss)));
  if (has_fused_loss(trace.step) && !is_scored && precision_of(trace.step) != Precision::Bf16)
    throw UsageError(fmt::format("--loss: fused is not known in {} (take --precision bf16)",
                                 to_string(precision_of(trace.step))));
  if (trace.step.loss && !is_scored)
    throw UsageError(
        fmt::format("--loss: {} has no logits of the next words (or caps or scales them), which is "
                    "what {} is for",
                    trace.model, to_text(*trace.step.loss)));
  const auto finds_visits = [](const OpaqueRow& row) { return row.operation == "aten::nonzero"; };
  if (trace.step.expert_load && experts_in(trace) == 0 &&
      std::ranges::none_of(trace.opaque_rows, finds_visits))
    throw UsageError(fmt::format(
        "--expert-load: {} has no experts, or all their rows in one tensor, whatever each gets "
        "(leave it out; experts that ranks share: --framework megatron --mesh ep=N)",
        trace.model));
  if (trace.step.liger && std::ranges::none_of(trace.opaque_rows, is_liger))
    throw UsageError(fmt::format(
        "--liger: Liger's kernels are known for LLaMA and its kin, not for {} (leave it out)",
        trace.model));
  if (trace.step.drop_path.value_or(0) > 0 &&
      std::ranges::find(trace.ops, OpKind::DropPath, &Op::kind) == trace.ops.end())
    throw UsageError(fmt::format("{} has no paths to drop (leave out the drop path)", trace.model));
}

}  // namespace tidemark
