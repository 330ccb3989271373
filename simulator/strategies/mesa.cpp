// Mesa (arXiv 2111.11124): the forward is exact, the copy saved for the backward has eight bits.
#include "simulator/strategies/mesa.h"

#include "simulator/needs.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
Operands quantized_operands(OpKind kind) {
  using namespace rules;
  switch (kind) {
    case OpKind::Linear:
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::Gelu:
    case OpKind::Silu:
      return x0;
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::Tanh:
      return y0;
    case OpKind::GeluComposed:
      return x0 | y1 | y2 | y3;
    case OpKind::Softmax:
      return x0 | y0;
    case OpKind::MatMul:
    case OpKind::Mul:
      return x0 | x1;
    default:
      return 0;
  }
}

Operands decoded_operands(OpKind kind) {
  return row_of(kind).work == Work::Elementwise ? quantized_operands(kind) : 0;
}

bool notes_extremes(OpKind kind) {
  switch (kind) {
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::Gelu:
    case OpKind::GeluComposed:
    case OpKind::Silu:
    case OpKind::Tanh:
    case OpKind::Softmax:
    case OpKind::Add:
    case OpKind::Mul:
    case OpKind::Scale:
      return true;
    default:
      return false;
  }
}

Refusal quantize_saved(const Trace& trace, const StrategyArguments& arguments, Plan& plan) {
  const Needs needs = derive_needs(trace);
  std::vector<bool> covered(trace.tensors.size()), excluded(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (Operands bits = needs.saved[i]; bits != 0; bits &= bits - 1) {
      const int bit = __builtin_ctz(bits);
      const TensorId storage = trace[operand(trace, op, bit)].storage;
      const bool is_quantized = (quantized_operands(op.kind) >> bit & 1) != 0;
      (is_quantized ? covered : excluded)[index(storage)] = true;
    }
  }
  bool any = false;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool normalized = covered[t] && !excluded[t];
    if (!normalized || needs.producer[t] == no_op || !is_floating(tensor.dtype)) continue;
    if (plan.actions[t] != Action::Keep || size_of(tensor.dtype) < 2) continue;
    decide(plan, static_cast<TensorId>(t), Action::Quantize, "kept in one byte per element");
    any = true;
  }
  if (!any) return "no op of this trace keeps a float tensor that Mesa's layers quantize";
  plan.released.codes_per_use = plan.released.copies_by_group =
      plan.released.batched_weight_gradient = arguments.has("released");
  return {};
}

}  // namespace tidemark
