// The gate of a mixture is a product of PyTorch's, not of these libraries.
#include "simulator/parallel/fused_gradients.h"

#include <set>
#include <tuple>

#include "simulator/parallel/complete_gradients.h"
#include "traces/engine_linear.h"
#include "traces/expert_ops.h"

namespace tidemark {

bool fuses_accumulation(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  return sharing && sharing->kind == Sharding::Kind::Megatron && sharing->fuses_accumulation &&
         find_framework(step.framework).megatron;
}

bool is_weight_of_product(const Trace& trace, const Op& op, std::size_t input) {
  if (input != 1 || !is_trained(trace, trace.inputs(op)[input])) return false;
  return op.kind == OpKind::Linear || is_engine_product(trace, op) ||
         is_product_of_experts(trace, op);
}

std::vector<Bytes> dummy_gradients(const Trace& trace) {
  std::set<std::tuple<std::int64_t, std::int64_t, DType>> shapes;  // outputs, inputs
  for (const Op& op : trace.ops) {
    if (op.inputs < 2 || !is_weight_of_product(trace, op, 1)) continue;
    const Tensor& weight = trace[trace.inputs(op)[1]];
    const std::int64_t last = weight.shape.back(), before = weight.shape.back(1);
    const bool is_of_experts = weight.shape.rank() == 3;
    shapes.insert({is_of_experts ? last : before, is_of_experts ? before : last, weight.dtype});
  }
  std::vector<Bytes> sizes;
  for (const auto& [outputs, inputs, dtype] : shapes)
    sizes.push_back(Bytes{outputs * inputs * size_of(dtype)});
  return sizes;
}

}  // namespace tidemark
