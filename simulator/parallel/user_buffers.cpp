// A ring's own part is there at once; the last part of a pipeline has nothing beside it; in bulk
// the product leaves some SMs to what runs beside it.
#include "simulator/parallel/user_buffers.h"

#include <algorithm>

#include "traces/engine_linear.h"
#include "traces/exchange_axis.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

constexpr double parts_of_pipeline = 4;  // num_splits
constexpr double sms_in_bulk = 16;       // num_sm
// qkv, proj, fc1 and fc2: a buffer for each product's exchange in the forward and for each
// gradient's of its input, and two for those of weights that what is scattered runs beside.
constexpr std::int64_t buffers = 10;

bool is_in_block(const Trace& trace, const Op& op) {
  return op.block >= 0 && (op.kind == OpKind::Linear || is_engine_product(trace, op));
}

}  // namespace

bool has_user_buffers(const StepOptions& step) {
  return step.tp_overlap && step.sequence_parallel && step.mesh[Axis::Tensor] > 1 &&
         find_framework(step.framework).transformer_engine;
}

std::vector<std::vector<OpId>> products_beside_exchanges(const Trace& trace) {
  if (!has_user_buffers(trace.step)) return {};
  std::vector<std::vector<OpId>> beside(trace.ops.size());
  std::vector<OpId> gathered_by(trace.tensors.size(), no_op), made_by = gathered_by;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const auto id = static_cast<OpId>(i);
    const TensorId read = op.inputs > 0 ? trace.inputs(op)[0] : no_tensor;
    if (is_in_block(trace, op)) {
      made_by[index(trace.outputs(op)[0])] = id;
      if (const OpId gather = gathered_by[index(read)]; gather != no_op)
        beside[index(gather)].push_back(id);
    }
    if (op.kind != OpKind::AllGather && op.kind != OpKind::ReduceScatter) continue;
    if (exchange_axis(trace, op) != Axis::Tensor) continue;
    if (op.kind == OpKind::AllGather) {
      gathered_by[index(trace.outputs(op)[0])] = id;
      // The product whose columns are gathered has no buffer (mtp_eh_proj of TELinear).
      if (const OpId product = made_by[index(read)]; product != no_op)
        if (const OpId gather = gathered_by[index(trace.inputs(trace[product])[0])];
            gather != no_op)
          std::erase(beside[index(gather)], product);
    }
    if (op.kind == OpKind::ReduceScatter && made_by[index(read)] != no_op)
      beside[i].push_back(made_by[index(read)]);
  }
  return beside;
}

double exposed_beside(Task task, OpKind kind, double exchange, double product, std::int64_t ranks,
                      int sms) {
  const bool is_backward = task == Task::Backward;
  const bool is_ring = is_backward ? kind == OpKind::ReduceScatter
                                   : kind == OpKind::AllGather && task == Task::Forward;
  if (is_ring) {
    const auto parts = static_cast<double>(ranks);
    return std::max(0.0, exchange - product * (parts - 1) / parts);
  }
  if (kind == OpKind::ReduceScatter)
    return std::max(exchange / parts_of_pipeline,
                    exchange - product * (parts_of_pipeline - 1) / parts_of_pipeline);
  const double slowed = std::min(1.0, sms_in_bulk / std::max(1, sms));
  return std::max(slowed * exchange, exchange - product);
}

Bytes user_buffers(const StepOptions& step, std::int64_t tokens, std::int64_t width) {
  if (!has_user_buffers(step)) return {};
  const std::int64_t elements = step.batch * tokens / step.mesh[Axis::Context] * width;
  return Bytes{buffers * elements * size_of(compute_dtype_of(precision_of(step)))};
}

}  // namespace tidemark
