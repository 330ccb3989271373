// Mesa (arXiv 2111.11124): the forward is exact, the copy saved for the backward has eight bits, or
// fewer.
#include <fmt/format.h>

#include "simulator/needs.h"
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
    quantize(plan, static_cast<TensorId>(t), mesa_encoding(trace.tensors[t].shape, bits, channels),
             reason);
    any = true;
  }
  if (!any) return "no op of this trace keeps a float tensor that Mesa's layers quantize";
  plan.quirks.codes_per_use = plan.quirks.copies_by_group = plan.quirks.batched_weight_gradient =
      arguments.has("released");
  return {};
}

}  // namespace tidemark
