// The cost of each run by task and kind of op: roofline first, then the device's measured curves.
#include "simulator/cost/cost_model.h"

#include <algorithm>

#include "simulator/needs.h"
#include "simulator/strategies/mesa.h"

namespace tidemark {
namespace {

// AdamW, eager, per element of fp32: mul_(p), m.mul_, m.add_, v.mul_, v.addcmul_, sqrt, div, add_,
// addcdiv_ read and write 90 B in nine kernels; the fused kernel reads p, g, m, v and writes p, m,
// v: 28 B. SGD reads p and g and writes p.
struct UpdateCost {
  double bytes_per_parameter_byte;
  int kernels;
};

UpdateCost update_cost(Optimizer optimizer, OptimizerLoop loop) {
  if (optimizer == Optimizer::Sgd) return {3, 1};
  if (optimizer == Optimizer::AdamW8bit || loop == OptimizerLoop::Fused) return {7, 1};
  return {22.5, 9};
}

// m × k times k × n, batch times, as the op kind sees its operands.
struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
};

double count_of(Bytes bytes) { return static_cast<double>(bytes.count); }

double count(const Tensor& tensor) { return static_cast<double>(numel(tensor.shape)); }

Product product_of(const Trace& trace, const Op& op) {
  const Tensor& a = trace[trace.inputs(op)[0]];
  const Tensor& b = trace[trace.inputs(op)[1]];
  const Tensor& y = trace[trace.outputs(op)[0]];
  if (op.kind == OpKind::MatMul) {
    const double m = static_cast<double>(a.shape.back(1)), k = static_cast<double>(a.shape.back());
    const double n = static_cast<double>(b.shape.back());
    return {count(y) / std::max(m * n, 1.0), m, n, k};
  }
  if (op.kind == OpKind::Conv2d) {
    const double groups = attribute(trace, op, AttributeKey::Groups, 1);
    const double channels = static_cast<double>(b.shape[0]);
    return {groups, count(y) / std::max(channels, 1.0), channels / groups,
            count(b) / std::max(channels, 1.0)};
  }
  const double k = static_cast<double>(b.shape.back());
  const double n = static_cast<double>(b.shape[0]);
  return {1, count(y) / std::max(n, 1.0), n, k};
}

// Scores and weighted sum: each query meets each key, half of them when causal.
double attention_flops(const Trace& trace, const Op& op) {
  const Tensor& q = trace[trace.inputs(op)[0]];
  const Tensor& k = trace[trace.inputs(op)[1]];
  const double keys = static_cast<double>(k.shape.back(1));
  const double causal = attribute(trace, op, AttributeKey::Causal) != 0 ? 0.5 : 1;
  return 4 * count(q) * keys * causal;
}

}  // namespace

CostModel::CostModel(const Trace& trace, const Device& device)
    : trace_(trace),
      device_(device),
      framework_(find_framework(trace.step.framework)),
      kernels_(device, precision_of(trace.step)),
      gradients_(derive_gradients(trace)) {}

double CostModel::operand_bytes(const Op& op) const {
  double bytes = 0;
  for (const TensorId input : trace_.inputs(op))
    bytes += static_cast<double>(size(trace_[input]).count);
  for (const TensorId output : trace_.outputs(op))
    bytes += static_cast<double>(size(trace_[output]).count);
  return bytes;
}

Cost CostModel::forward_product(const Op& op) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const double bytes = operand_bytes(op);
  if (op.kind == OpKind::FlashAttention) {
    const double d = std::max(1.0, static_cast<double>(x.shape.back()));
    const double flops = attention_flops(trace_, op);
    // As a product with 128-row tiles of queries, one block per tile and head.
    return kernels_.product(1, count(x) / d, d, flops / (2 * std::max(count(x), 1.0)), x.dtype,
                            bytes);
  }
  const Product p = product_of(trace_, op);
  return kernels_.product(p.batch, p.m, p.n, p.k, x.dtype, bytes);
}

Cost CostModel::backward_product(const Op& op, std::uint32_t gradients) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const double bytes = operand_bytes(op);
  if (op.kind == OpKind::FlashAttention) {
    Cost cost = forward_product(op);
    // Five products instead of two (arXiv 2205.14135, section B.4), reading dO and writing dq, dk,
    // dv.
    cost.time = cost.time * 5 / 2;
    cost.flops *= 2.5, cost.bytes *= 2, cost.kernels = 2;
    return cost;
  }
  const Product p = product_of(trace_, op);
  Cost cost;
  if (gradients & 1) cost = then(cost, kernels_.product(p.batch, p.m, p.k, p.n, x.dtype, bytes));
  if (gradients & 2) cost = then(cost, kernels_.product(p.batch, p.k, p.n, p.m, x.dtype, bytes));
  if (gradients & 4) {
    const Tensor& y = trace_[trace_.outputs(op)[0]];
    cost = then(cost, kernels_.elementwise(static_cast<double>(size(y).count), count(y), 1));
  }
  return cost;
}

Cost CostModel::forward(const Op& op) const {
  const OpRow& row = row_of(op.kind);
  const Tensor& y = trace_[trace_.outputs(op)[0]];
  const double elements = count(y);
  const double y_bytes = static_cast<double>(size(y).count);
  switch (row.work) {
    case Work::None:
      return {};
    case Work::MatrixUnits:
      return forward_product(op);
    case Work::Gather:
      return kernels_.elementwise(2 * y_bytes, elements, row.forward_kernels);
    case Work::Elementwise:
      break;
  }
  // A norm with one fused kernel does not write the normalized tensor apart.
  const bool composed = op.kind != OpKind::RmsNorm || op.outputs > 2;
  if (row.forward_kernels > 2 && composed)
    return kernels_.elementwise(row.forward_kernels * 2 * y_bytes, elements, row.forward_kernels);
  return kernels_.elementwise(operand_bytes(op), elements, std::min(row.forward_kernels, 2));
}

// dx streams x, dy and dx; dγ and dβ stream x and dy.
Cost CostModel::norm_backward(const Op& op, std::uint32_t gradients, double decoded) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const double bytes = static_cast<double>(size(x).count), elements = count(x);
  Cost cost;
  if (gradients & 1) cost = then(cost, kernels_.elementwise(3 * bytes - decoded, elements, 1));
  if ((gradients & ~1u) == 0) return cost;
  const double x_and_dy = 2 * bytes - decoded;
  if (!framework_.norm_gradient_by_columns)
    return then(cost, kernels_.elementwise(x_and_dy, elements, 1));
  const auto columns = static_cast<double>(x.shape.back());
  return then(cost, kernels_.sum_by_columns(x_and_dy, columns));
}

// `decoded`: bytes that are not read because codes are read in place of values.
Cost CostModel::backward(const Op& op, std::uint32_t gradients, double decoded) const {
  const OpRow& row = row_of(op.kind);
  if (op.kind == OpKind::LayerNorm) return norm_backward(op, gradients, decoded);
  if (row.work == Work::MatrixUnits) return backward_product(op, gradients);
  double bytes = -decoded, largest = 0;
  for (const TensorId output : trace_.outputs(op)) {
    bytes += static_cast<double>(size(trace_[output]).count);
    largest = std::max(largest, count(trace_[output]));
  }
  for (const TensorId input : trace_.inputs(op)) {
    bytes += 2 * static_cast<double>(size(trace_[input]).count);  // saved and its gradient
    largest = std::max(largest, count(trace_[input]));
  }
  const int kernels = std::max(row.backward_kernels, 1);
  return kernels_.elementwise(kernels > 2 ? bytes * kernels / 2 : bytes, largest, kernels);
}

Cost CostModel::of(const Schedule& schedule, const Run& run) const {
  Cost cost = roofline(schedule, run);
  cost.sm_share *= device_.product_share.value_or(1);
  cost.memory_share *= device_.stream_share.value_or(1);
  if (device_.curves.empty() || work_of(cost) <= 0) return cost;
  const auto curve = device_.curves.find(curve_key(schedule, run));
  if (curve == device_.curves.end()) return cost;
  const double time = std::max(1.0, time_on(curve->second, work_of(cost)));
  // The bytes stay, so a slower kernel uses less of the bandwidth.
  cost.memory_share =
      std::min(1.0, cost.bytes / time / kernels_.bytes_per_ns() * device_.stream_share.value_or(1));
  cost.time = rounded_ns(time);
  return cost;
}

std::string CostModel::curve_key(const Schedule& schedule, const Run& run) const {
  std::string key(to_string(run.task));
  const bool is_of_op =
      run.task == Task::Forward || run.task == Task::Backward || run.task == Task::Recompute;
  if (run.task == Task::Recompute) key = to_string(Task::Forward);
  TensorId tensor = no_tensor;
  if (is_of_op) {
    key.append(" ").append(to_string(trace_[run.op].kind));
    // A kernel of its own: it moves memory where the others multiply matrices.
    if (attribute(trace_, trace_[run.op], AttributeKey::Groups, 1) > 1) key += " in groups";
    tensor = trace_.outputs(trace_[run.op])[0];
  } else if (run.writes > 0) {
    tensor = schedule[schedule.writes(run)[0]].tensor;
  }
  if (tensor != no_tensor) key.append(" ").append(to_string(trace_[tensor].dtype));
  return key;
}

// To codes: one pass for the extremes if the producer did not note them, a tiny one for the range,
// one that rounds. Mesa's released code copies the values group by group and reads that copy three
// times (largest, smallest, codes); from codes it writes such a copy and then copies it (its
// custom_quant.py).
Cost CostModel::conversion(const Schedule& schedule, const Run& run) const {
  double bytes = 0, by_group = 0;
  for (const BufferId buffer : schedule.writes(run)) {
    bytes += count_of(schedule[buffer].size);
    if (schedule[buffer].role == Role::Temporary) by_group = count_of(schedule[buffer].size);
  }
  const double read = count_of(schedule[schedule.reads(run)[0]].size);
  bytes += read;
  int kernels = 1;
  if (run.task == Task::Quantize) {
    const bool knows_extremes = notes_extremes(trace_[run.op].kind);
    bytes += by_group > 0 ? 3 * by_group : knows_extremes ? 0 : read;
    kernels = by_group > 0 ? 4 : knows_extremes ? 2 : 3;
  } else if (by_group > 0) {
    bytes += by_group;
    kernels = 2;
  }
  return kernels_.elementwise(bytes, bytes / 8, kernels);
}

Cost CostModel::roofline(const Schedule& schedule, const Run& run) const {
  const auto total = [&](std::span<const BufferId> buffers) {
    double bytes = 0;
    for (const BufferId buffer : buffers) bytes += static_cast<double>(schedule[buffer].size.count);
    return bytes;
  };
  const auto decoded = [&](std::span<const BufferId> buffers) {
    Bytes spared;
    for (const BufferId id : buffers)
      if (const Buffer& buffer = schedule[id]; buffer.role == Role::Codes)
        spared += size(trace_[buffer.tensor]) - buffer.size;
    return count_of(spared);
  };
  const auto streaming = [&] {
    const double bytes = total(schedule.reads(run)) + total(schedule.writes(run));
    return kernels_.elementwise(bytes, bytes / 8, 1);
  };
  switch (run.task) {
    case Task::Forward:
    case Task::Recompute:
      return forward(trace_[run.op]);
    case Task::Backward:
      return backward(trace_[run.op], gradients_[index(run.op)], decoded(schedule.reads(run)));
    case Task::Seed:
    case Task::Accumulate:
    case Task::Reconstruct:
      return streaming();
    case Task::Quantize:
    case Task::Dequantize:
      return conversion(schedule, run);
    case Task::Optimizer: {
      const UpdateCost update = update_cost(trace_.step.optimizer, framework_.optimizer_loop);
      const double parameters = total(schedule.reads(run));  // one gradient per parameter
      return kernels_.elementwise(parameters * update.bytes_per_parameter_byte, parameters / 4,
                                  update.kernels);
    }
  }
  return {};
}

}  // namespace tidemark
