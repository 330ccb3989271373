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

TensorId weight_of_product(const Trace& trace, const Op& op) {
  const bool is_product =
      op.kind == OpKind::Linear || is_engine_product(trace, op) || is_product_of_experts(trace, op);
  if (!is_product) return no_tensor;
  const TensorId weight = trace.inputs(op)[1];
  return is_trained(trace, weight) ? weight : no_tensor;
}

std::vector<DummyGradient> dummy_gradients(const Trace& trace) {
  std::set<std::tuple<std::int64_t, std::int64_t, DType>> known;  // outputs, inputs
  std::vector<DummyGradient> dummies;
  for (const Op& op : trace.ops) {
    const TensorId weight = weight_of_product(trace, op);
    if (weight == no_tensor) continue;
    const auto& [shape, dtype] = std::tie(trace[weight].shape, trace[weight].dtype);
    const bool is_of_experts = shape.rank() == 3;  // [experts, inputs, outputs]
    const std::int64_t last = shape.back(), before = shape.back(1);
    const bool is_new =
        known.insert({is_of_experts ? last : before, is_of_experts ? before : last, dtype}).second;
    if (is_new) dummies.push_back({weight, Bytes{last * before * size_of(dtype)}});
  }
  return dummies;
}

}  // namespace tidemark
