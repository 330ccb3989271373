// Adds up matrix products op by op: the forward, and one more for each factor with a gradient.
#include "simulator/cost/model_flops.h"

#include <algorithm>
#include <bit>

#include "simulator/needs.h"
#include "traces/exchange_axis.h"
#include "traces/expert_ops.h"

namespace tidemark {
namespace {

double elements(const Tensor& tensor) { return static_cast<double>(numel(tensor.shape)); }

// Each element of the result is a sum of so many products.
double terms(const Trace& trace, const Op& op) {
  const Tensor& a = trace[trace.inputs(op)[0]];
  const Tensor& b = trace[trace.inputs(op)[1]];
  if (op.kind != OpKind::Conv2d) return static_cast<double>(a.shape.back());
  return elements(b) / std::max(1.0, static_cast<double>(b.shape[0]));
}

// q·k for the scores, then the weighted sum of v.
double attention_flops(const Trace& trace, const Op& op, std::uint32_t gradients) {
  const auto inputs = trace.inputs(op);
  const Tensor &q = trace[inputs[0]], &k = trace[inputs[1]], &y = trace[trace.outputs(op)[0]];
  const double keys = static_cast<double>(k.shape.back(1)) * rounds_of_keys(trace.step);
  const double scores = 2 * elements(q) * keys, sum = 2 * elements(y) * keys;
  double flops = scores + sum;
  if (gradients & 3) flops += sum;  // of the weights, on the way to q and k
  flops += scores * std::popcount(gradients & 3);
  if (gradients & 4) flops += sum;  // of v
  return flops;
}

// The gradient of either factor is a product of the same size.
double flops_of(const Trace& trace, const Op& op, std::uint32_t gradients) {
  if (const OpaqueRow* row = opaque_row(trace, op))
    return static_cast<double>(row->forward.flops.value_or(0)) +
           static_cast<double>(gradients == 0 ? 0 : row->backward.flops.value_or(0));
  if (op.kind == OpKind::FlashAttention) return attention_flops(trace, op, gradients);
  const double forward = 2 * elements(trace[trace.outputs(op)[0]]) * terms(trace, op);
  return forward * (1 + std::popcount(gradients & 3));
}

double& unit_of(ModelFlops& flops, const OpaqueRow* row) {
  if (row && row->math == DType::Float8) return flops.fp8;
  if (row && row->math == DType::Float4x2) return flops.fp4;
  return flops.own;
}

// Of the visits of its experts, the share that a rank would get if all got as many: as many as its
// own tokens make (--expert-load).
double even_share(const Trace& trace) {
  if (trace.step.mesh.experts == 1 || !trace.step.expert_load) return 1;
  for (const Op& op : trace.ops)
    if (expert_op(trace, op) == ExpertOp::Exchange)
      return elements(trace[trace.inputs(op)[0]]) / elements(trace[trace.outputs(op)[0]]);
  return 1;
}

}  // namespace

double model_flops(const Trace& trace) { return flops_by_unit(trace).all(); }

ModelFlops flops_by_unit(const Trace& trace) {
  return flops_by_unit(trace, derive_gradients(trace));
}

ModelFlops flops_by_unit(const Trace& trace, std::span<const std::uint32_t> gradients) {
  const double of_experts = even_share(trace);
  ModelFlops flops;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    if (!is_product(row_of(op.kind).work) && op.kind != OpKind::Opaque) continue;
    const bool is_shared = of_experts != 1 && is_product_of_experts(trace, op);
    unit_of(flops, opaque_row(trace, op)) +=
        flops_of(trace, op, gradients[i]) * (is_shared ? of_experts : 1);
  }
  return flops;
}

}  // namespace tidemark
