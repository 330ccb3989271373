// Mesa (arXiv 2111.11124): the forward is exact, the copy saved for the backward has eight bits, or
// fewer. Delayed, which is not the paper's: the range is that of the last step.
#include <fmt/format.h>

#include "simulator/needs.h"
#include "simulator/strategies/regions.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

std::vector<bool> quantizable_storages(const Trace& trace, const Needs& needs) {
  std::vector<bool> covered(trace.tensors.size()), excluded(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (Operands bits = needs.saved[i]; bits != 0; bits &= bits - 1) {
      const int bit = __builtin_ctz(bits);
      const TensorId storage = trace[operand(trace, op, bit)].storage;
      const bool is_quantized = (quantized_operands(trace, op) >> bit & 1) != 0;
      (is_quantized ? covered : excluded)[index(storage)] = true;
    }
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const DType dtype = trace.tensors[t].dtype;
    covered[t] = covered[t] && !excluded[t] && needs.producer[t] != no_op && is_floating(dtype) &&
                 size_of(dtype) >= 2;
  }
  return covered;
}

namespace {

bool is_in_region(const Plan& plan, std::size_t op) {
  return std::ranges::any_of(plan.regions, [&](const Region& region) {
    return index(region.begin) <= op && op < index(region.end);
  });
}

// Where an activation's input is kept in codes anyway, its output need not be kept: from the op to
// the last reader of that output is a region of its own. Regions do not overlap, so activations
// whose outputs meet later (a gate and what it gates) are one after the other.
void make_activations_again(const Trace& trace, const Needs& needs, Plan& plan) {
  const auto is_coded = [&](TensorId storage) {
    return plan.decisions[index(storage)].action == Action::Quantize;
  };
  std::size_t free_from = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const bool is_gelu_or_silu = op.kind == OpKind::Gelu || op.kind == OpKind::Silu;
    if (!is_gelu_or_silu || i < free_from || needs.runs_once[i]) continue;
    const TensorId x = trace[trace.inputs(op)[0]].storage, y = trace.outputs(op)[0];
    if (trace[y].storage != y || !is_coded(x) || !is_coded(y)) continue;
    const std::size_t end = index(last_forward_use(needs, y)) + 1;
    bool is_free = true;
    for (std::size_t at = i; at < end; ++at) is_free = is_free && !is_in_region(plan, at);
    if (!is_free) continue;
    decide(plan, y, Action::Recompute, "made again from the codes of what its op reads");
    add_region(plan, {static_cast<OpId>(i), static_cast<OpId>(i), static_cast<OpId>(end)});
    free_from = end;
  }
  number_chains(plan);
}

}  // namespace

Refusal quantize_saved(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                       Plan& plan) {
  const std::vector<bool> quantizable = quantizable_storages(trace, needs);
  const auto bits = static_cast<int>(arguments.number("bits").value_or(8));
  const std::int64_t channels = arguments.number("group").value_or(mesa_channels);
  const std::string reason =
      bits == 8 ? "kept in one byte per element" : fmt::format("kept in {} bits per element", bits);
  bool any = false;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!quantizable[t] || plan.decisions[t].action != Action::Keep) continue;
    Encoding encoding = mesa_encoding(trace.tensors[t].shape, bits, channels);
    encoding.delayed = arguments.has("delayed");
    quantize(plan, static_cast<TensorId>(t), encoding, reason);
    any = true;
  }
  if (!any) return "no op of this trace keeps a float tensor that Mesa's layers quantize";
  if (arguments.has("delayed")) make_activations_again(trace, needs, plan);
  plan.quirks.codes_per_use = plan.quirks.copies_by_group = plan.quirks.batched_weight_gradient =
      arguments.has("released");
  return {};
}

}  // namespace tidemark
