// jax.checkpoint_policies say which results of dot products stay (jax.readthedocs.io, "Control
// autodiff's saved values with jax.checkpoint"); Megatron-LM's --recompute-modules name what is
// computed again in all layers (megatron/training/arguments.py). XLA's own fusion is not modelled.
#include "analysis/planning/named_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tidemark {
namespace {

bool is_within(const Op& op, std::string_view part) {
  return op.name.find(fmt::format(".{}.", part)) != std::string::npos;
}

bool is_norm(OpKind kind) { return kind == OpKind::LayerNorm || kind == OpKind::RmsNorm; }

// Scores, softmax, dropout and their product with the values; not the projections before it.
bool is_core_attention(const Op& op) {
  constexpr std::array kinds = {OpKind::FlashAttention, OpKind::MatMul, OpKind::Softmax,
                                OpKind::Scale,          OpKind::Add,    OpKind::Dropout};
  return is_within(op, "attn") && std::ranges::find(kinds, op.kind) != kinds.end();
}

struct Row {
  std::string_view name;
  bool (*is_meant)(const Op& op);
};

// JAX: what stays. A product of activations with a weight has no batch dimension in its sense. It
// makes masks of dropout again from their key alone; here they stay, which costs a byte for each
// element, because the op that makes them would need its input, too.
constexpr std::array dots = {
    Row{"dots_saveable",
        [](const Op& op) { return op.kind == OpKind::Linear || op.kind == OpKind::MatMul; }},
    Row{"dots_with_no_batch_dims_saveable",
        [](const Op& op) { return op.kind == OpKind::Linear; }}};

// Megatron: what is computed again. Its mlp is the dense one.
constexpr std::array modules = {
    Row{"core_attn", is_core_attention},
    Row{"layernorm", [](const Op& op) { return is_norm(op.kind) && !is_within(op, "attn"); }},
    Row{"mlp", [](const Op& op) { return is_within(op, "mlp") && !is_within(op, "experts"); }}};

template <typename IsRecomputed>
std::vector<bool> marked(const Trace& trace, IsRecomputed is_recomputed) {
  std::vector<bool> found(trace.ops.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = trace.ops[i].block >= 0 && is_recomputed(trace.ops[i]);
  return found;
}

}  // namespace

std::vector<NamedPolicy> named_policies(const Trace& trace) {
  std::vector<NamedPolicy> policies;
  for (const Row& row : dots)
    policies.push_back(
        {"JAX policy",
         fmt::format("jax.checkpoint(block, policy=jax.checkpoint_policies.{})", row.name),
         marked(trace,
                [&](const Op& op) { return !row.is_meant(op) && op.kind != OpKind::Dropout; })});
  for (std::uint32_t subset = 1; subset < 1U << modules.size(); ++subset) {
    std::string names;
    for (std::size_t m = 0; m < modules.size(); ++m)
      if (subset >> m & 1U) names.append(" ").append(modules[m].name);
    policies.push_back(
        {"selective modules",
         fmt::format("--recompute-granularity selective --recompute-modules{} (Megatron)", names),
         marked(trace, [&](const Op& op) {
           for (std::size_t m = 0; m < modules.size(); ++m)
             if ((subset >> m & 1U) && modules[m].is_meant(op)) return true;
           return false;
         })});
  }
  return policies;
}

}  // namespace tidemark
