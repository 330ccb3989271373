#include "simulator/cost_model.h"

#include <algorithm>
#include <cmath>

#include "simulator/mesa.h"
#include "simulator/needs.h"

namespace tidemark {
namespace {

// A streaming kernel's block handles 512 elements: 128 threads of 4, as PyTorch's vectorized
// elementwise kernels (ATen/native/cuda/thread_constants.h). An SM holds 16 such blocks (2048
// threads; 1024 on Turing and 1536 on Ampere's and Ada's consumer chips, where waves are more).
constexpr double elements_per_block = 512;
constexpr double blocks_per_sm = 16;

// Tiles of output that a matrix-product kernel computes per block, one block per SM (cuBLAS and
// CUTLASS names of the usual kernels: 256x128, 128x128, 128x64, 64x64, 32x32).
struct Tile {
  double m, n;
};
constexpr std::array tiles = {Tile{256, 128}, Tile{128, 256}, Tile{128, 128}, Tile{128, 64},
                              Tile{64, 128},  Tile{64, 64},   Tile{32, 32}};

// PyTorch before 2.0 reduces dγ and dβ of a layer norm with one block per 32 columns of 32 × 16
// threads, each with two rows of two tensors in flight (ATen/native/cuda/layer_norm_kernel.cu,
// kColwiseReduceTileSize). A block can move no more than its bytes in flight per memory latency:
// 290 cycles on Ampere (arXiv 2208.11174, table IV).
constexpr double columns_per_block = 32;
constexpr double bytes_in_flight_per_block = 32 * 16 * 2 * 2 * 4;
constexpr double memory_latency_cycles = 290;

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

// std::ceil for block counts, without its call for special values.
double ceiling(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1 : whole;
}

// Share of slots held on average: full waves hold all, the last one what is left.
double wave_share(double blocks, double slots) {
  if (blocks <= 0) return 0;
  return blocks / (ceiling(blocks / slots) * slots);
}

MathUnit unit_for(DType dtype, Precision precision) {
  switch (dtype) {
    case DType::Float16:
      return MathUnit::Fp16;
    case DType::BFloat16:
      return MathUnit::Bf16;
    default:
      return precision == Precision::Tf32 ? MathUnit::Tf32 : MathUnit::Fp32;
  }
}

// Two kernels of one run, one after the other.
Cost then(const Cost& a, const Cost& b) {
  const double ta = static_cast<double>(a.time.count()), tb = static_cast<double>(b.time.count());
  const double total = std::max(ta + tb, 1.0);
  return {a.time + b.time,
          a.kernels + b.kernels,
          a.flops + b.flops,
          a.bytes + b.bytes,
          (a.sm_share * ta + b.sm_share * tb) / total,
          (a.memory_share * ta + b.memory_share * tb) / total};
}

double count_of(Bytes bytes) { return static_cast<double>(bytes.count); }

Nanoseconds to_ns(double time) { return Nanoseconds{static_cast<std::int64_t>(time + 0.5)}; }

}  // namespace

CostModel::CostModel(const Trace& trace, const Device& device)
    : trace_(trace),
      device_(device),
      precision_(precision_of(trace.step)),
      framework_(find_framework(trace.step.framework)),
      bytes_per_ns_(stream_bytes_per_second(device) / 1e9),
      gradients_(derive_gradients(trace)) {}

Cost CostModel::elementwise(double bytes, double elements, int kernels) const {
  if (kernels == 0) return {};
  const double memory = bytes / bytes_per_ns_;
  const double gap = static_cast<double>(device_.kernel_gap.count()) * kernels;
  const double blocks = ceiling(elements / elements_per_block);
  return {
      to_ns(memory + gap),
      kernels,
      0,
      bytes,
      wave_share(blocks, device_.sm_count * blocks_per_sm) * memory / std::max(memory + gap, 1.0),
      memory / std::max(memory + gap, 1.0)};
}

Cost CostModel::product(double batch, double m, double n, double k, DType dtype,
                        double bytes) const {
  const double flops_per_ns = gemm_flops_per_second(device_, unit_for(dtype, precision_)) / 1e9;
  const double sms = device_.sm_count;
  double compute = 0, share = 0;
  for (const Tile& tile : tiles) {
    const double blocks = batch * ceiling(m / tile.m) * ceiling(n / tile.n);
    const double waves = ceiling(blocks / sms);
    const double time = waves * sms * tile.m * tile.n * k * 2 / flops_per_ns;
    if (share > 0 && time >= compute) continue;
    compute = time;
    share = wave_share(blocks, sms);
  }
  const double memory = bytes / bytes_per_ns_;
  const double busy = std::max(compute, memory);
  const double total = busy + static_cast<double>(device_.kernel_gap.count());
  return {to_ns(total),
          1,
          2 * batch * m * n * k,
          bytes,
          share * busy / std::max(total, 1.0),
          memory / std::max(total, 1.0)};
}

double CostModel::operand_bytes(const Op& op) const {
  double bytes = 0;
  for (const TensorId input : trace_.inputs(op))
    bytes += static_cast<double>(size(trace_[input]).count);
  for (const TensorId output : trace_.outputs(op))
    bytes += static_cast<double>(size(trace_[output]).count);
  return bytes;
}

// m × k times k × n, batch times, as the op kind sees its operands.
namespace {

struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
};

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

Cost CostModel::forward_product(const Op& op) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const double bytes = operand_bytes(op);
  if (op.kind == OpKind::FlashAttention) {
    const double d = std::max(1.0, static_cast<double>(x.shape.back()));
    const double flops = attention_flops(trace_, op);
    // As a product with 128-row tiles of queries, one block per tile and head.
    return product(1, count(x) / d, d, flops / (2 * std::max(count(x), 1.0)), x.dtype, bytes);
  }
  const Product p = product_of(trace_, op);
  return product(p.batch, p.m, p.n, p.k, x.dtype, bytes);
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
  if (gradients & 1) cost = then(cost, product(p.batch, p.m, p.k, p.n, x.dtype, bytes));
  if (gradients & 2) cost = then(cost, product(p.batch, p.k, p.n, p.m, x.dtype, bytes));
  if (gradients & 4) {
    const Tensor& y = trace_[trace_.outputs(op)[0]];
    cost = then(cost, elementwise(static_cast<double>(size(y).count), count(y), 1));
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
      return elementwise(2 * y_bytes, elements, row.forward_kernels);
    case Work::Elementwise:
      break;
  }
  // A norm with one fused kernel does not write the normalized tensor apart.
  const bool composed = op.kind != OpKind::RmsNorm || op.outputs > 2;
  if (row.forward_kernels > 2 && composed)
    return elementwise(row.forward_kernels * 2 * y_bytes, elements, row.forward_kernels);
  return elementwise(operand_bytes(op), elements, std::min(row.forward_kernels, 2));
}

// dx streams x, dy and dx; dγ and dβ stream x and dy.
Cost CostModel::norm_backward(const Op& op, std::uint32_t gradients, double decoded) const {
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  const double bytes = static_cast<double>(size(x).count), elements = count(x);
  Cost cost;
  if (gradients & 1) cost = then(cost, elementwise(3 * bytes - decoded, elements, 1));
  if ((gradients & ~1u) == 0) return cost;
  const double x_and_dy = 2 * bytes - decoded;
  if (!framework_.norm_gradient_by_columns) return then(cost, elementwise(x_and_dy, elements, 1));
  const double sms = device_.sm_count;
  const double blocks =
      std::min(sms, ceiling(static_cast<double>(x.shape.back()) / columns_per_block));
  const double block_bytes_per_ns =
      bytes_in_flight_per_block / (memory_latency_cycles / (device_.clock_hz / 1e9));
  const double rate = std::min(bytes_per_ns_, blocks * block_bytes_per_ns);
  const double time = x_and_dy / rate;
  const double total = time + static_cast<double>(device_.kernel_gap.count());
  return then(cost, {to_ns(total), 1, 0, x_and_dy, blocks / sms * time / total,
                     rate / bytes_per_ns_ * time / total});
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
  return elementwise(kernels > 2 ? bytes * kernels / 2 : bytes, largest, kernels);
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
      std::min(1.0, cost.bytes / time / bytes_per_ns_ * device_.stream_share.value_or(1));
  cost.time = to_ns(time);
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
    tensor = trace_.outputs(trace_[run.op])[0];
  } else if (run.writes > 0) {
    tensor = schedule[schedule.writes(run)[0]].tensor;
  }
  if (tensor != no_tensor) key.append(" ").append(to_string(trace_[tensor].dtype));
  return key;
}

Cost CostModel::roofline(const Schedule& schedule, const Run& run) const {
  const auto total = [&](std::span<const BufferId> buffers) {
    double bytes = 0;
    for (const BufferId buffer : buffers) bytes += static_cast<double>(schedule[buffer].size.count);
    return bytes;
  };
  const auto decoded = [&](std::span<const BufferId> buffers) {
    double bytes = 0;
    for (const BufferId buffer : buffers)
      if (schedule[buffer].role == Role::Codes)
        bytes += static_cast<double>(
            (size(trace_[schedule[buffer].tensor]) - schedule[buffer].size).count);
    return bytes;
  };
  const auto streaming = [&] {
    const double bytes = total(schedule.reads(run)) + total(schedule.writes(run));
    return elementwise(bytes, bytes / 8, 1);
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
      return elementwise(parameters * update.bytes_per_parameter_byte, parameters / 4,
                         update.kernels);
    }
  }
  return {};
}

// To codes: one pass for the extremes if the producer did not note them, a tiny one for the range,
// one that rounds. Mesa's
// released code copies the values group by group and reads that copy three times (largest,
// smallest, codes); from codes it writes such a copy and then copies it (its custom_quant.py).
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
  return elementwise(bytes, bytes / 8, kernels);
}

Cost CostModel::of_copy(Bytes bytes) const {
  const double time = static_cast<double>(bytes.count) / device_.host_link_bytes_per_second * 1e9;
  return {to_ns(time), 1, 0, static_cast<double>(bytes.count), 0, 0};
}

}  // namespace tidemark
