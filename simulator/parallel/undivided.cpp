// Kernels that read all of something, as options and models put them into a step.
#include "simulator/parallel/undivided.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/expert_ops.h"
#include "traces/framework.h"
#include "traces/linear_names.h"

namespace tidemark {
namespace {

// A table of them is looked up by how far two tokens are apart.
bool has_relative_positions(const Trace& trace) {
  return std::ranges::any_of(trace.ops, [](const Op& op) {
    return op.kind == OpKind::Embedding && leaf_of(op.name) == "relative_bias";
  });
}

// Megatron-LM's layer of experts has ops of its own.
bool has_experts_of_transformers(const Trace& trace) {
  return experts_in(trace) == 0 && std::ranges::any_of(trace.opaque_rows, [](const OpaqueRow& row) {
           return row.operation == "aten::topk";
         });
}

}  // namespace

std::string undivided(const Trace& trace, Axis axis) {
  const StepOptions& step = trace.step;
  const bool is_tensor = axis == Axis::Tensor;
  const std::string_view name = is_tensor ? "tp" : "cp";
  if (step.liger)
    return fmt::format("Liger's kernels are not shared by {} ranks (leave --liger out)", name);
  if (step.loss && !has_fused_loss(step) && !has_native_loss(step))
    return fmt::format("--loss {} is not shared by {} ranks (leave it out)", to_text(*step.loss),
                       name);
  if (is_tensor && step.linears && !find_framework(step.framework).transformer_engine)
    return "ranks gather codes for torchao's linears, which is not known here (leave --linears "
           "out)";
  if (has_experts_of_transformers(trace))
    return fmt::format(
        "experts as transformers runs them are not shared by {} ranks (take --framework megatron)",
        name);
  if (!is_tensor && trace.family == "megatron-t5")
    return "Megatron-LM's T5 gives each context rank whole sequences (take cp=1)";
  if (trace.family == "deberta")
    return fmt::format("disentangled attention is not shared by {} ranks (take {}=1)", name, name);
  if (has_relative_positions(trace))
    return fmt::format("relative positions are of all {} (take {}=1)",
                       is_tensor ? "heads" : "pairs of tokens", name);
  return {};
}

}  // namespace tidemark
