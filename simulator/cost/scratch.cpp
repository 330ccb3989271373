// Formulas from aten/src/ATen/native of PyTorch 2.6, each checked against what the allocator was
// asked for (scripts/capture_steps).
#include "simulator/cost/scratch.h"

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "simulator/kernel_choice.h"
#include "traces/expert_ops.h"
#include "traces/optimizer_of.h"

namespace tidemark {
namespace {

std::int64_t rows_of(const Shape& shape) {
  return shape.rank() == 0 ? 1 : numel(shape) / std::max<std::int64_t>(1, shape.back());
}

/// One run with what it reads and writes.
struct Place {
  const Trace& trace;
  const Schedule& schedule;
  const Run& run;
  const Device& device;
  const Op& op;

  const Tensor& input(std::size_t i) const { return trace[trace.inputs(op)[i]]; }
  const Tensor& output(std::size_t i) const { return trace[trace.outputs(op)[i]]; }
  bool makes_gradient(std::size_t i) const {
    if (i >= op.inputs) return false;
    return std::ranges::any_of(schedule.writes(run), [&](BufferId b) {
      return schedule[b].role == Role::Gradient && schedule[b].tensor == trace.inputs(op)[i];
    });
  }
};

// cuBLAS beside the product itself: nothing where its workspace stays from call to call.
std::int64_t product(const Place& at) {
  const Framework& framework = find_framework(at.trace.step.framework);
  return framework.blas_workspace_per_call ? blas_workspace(framework, at.device).count : 0;
}

// cuda/CUDABlas.cpp: what gemm_and_bias() hands to cuBLASLt, which adds the bias while it stores.
void linear_forward(const Place& at, Scratch& scratch) {
  constexpr std::int64_t workspace = 1024 * 1024;
  const bool adds_bias = at.op.inputs > 2 && rows_of(at.input(0).shape) > 1;
  scratch.add(adds_bias ? workspace : product(at));
}

void add_column_sum(const Place& at, std::int64_t rows, std::int64_t columns, Scratch& scratch) {
  scratch.add(column_sum_staging(rows, columns, at.device));
}

// Products and the sum of the bias's gradient come one after the other.
void linear_backward(const Place& at, Scratch& scratch) {
  const Shape& y = at.output(0).shape;
  const std::int64_t sum =
      at.makes_gradient(2) ? column_sum_staging(rows_of(y), y.back(), at.device) : 0;
  scratch.add(std::max(sum, product(at)));
}

// transformers/cuda/flash_attn/flash_api.cpp, mha_bwd(): dq in fp32, the row sums of dy · y, and dk
// and dv of every head where the heads are grouped.
void flash_backward(const Place& at, Scratch& scratch) {
  const Shape &q = at.input(0).shape, &k = at.input(1).shape;
  const std::int64_t heads = q[0] * q[1] * round_up(q[2], 128);
  scratch.add(4 * heads);
  scratch.add(4 * heads * round_up(q[3], 32));
  if (k[1] == q[1]) return;
  const std::int64_t expanded = q[0] * q[1] * k[2] * k[3] * size_of(at.input(1).dtype);
  scratch.add(expanded), scratch.add(expanded);
}

// transformers/cuda/mem_eff_attention/kernel_backward.h, workspace_size(): dq by tiles, each with a
// lock; beyond 128 channels of 16 bits dk and dv, too. In fp32 dy · y is made before, out of place.
void memory_efficient_backward(const Place& at, Scratch& scratch) {
  const Shape &q = at.input(0).shape, &k = at.input(1).shape;
  const std::int64_t heads = q[0] * q[1], d = q[3];
  const bool is_half = size_of(at.input(0).dtype) == 2;
  constexpr std::int64_t lock = 16;
  std::int64_t tile_rows = 128, tile_columns = 64;
  if (d <= 64)
    tile_rows = 64;
  else if (d <= 128 && is_half)
    tile_columns = 128;
  std::int64_t per_head =
      ceil_div(q[2], tile_rows) * ceil_div(d, tile_columns) * (4 * tile_rows * tile_columns + lock);
  if (is_half && d > 128) per_head += 2 * 4 * round_up(k[2], 64) * round_up(d, 128);
  const std::int64_t products = is_half ? 0 : numel(q) * size_of(DType::Float32);
  scratch.add(4 * heads * q[2]);
  scratch.add(std::max(heads * per_head, products));
}

void attention_backward(const Place& at, Scratch& scratch) {
  if (attribute(at.trace, at.op, AttributeKey::MemoryEfficient) != 0)
    return memory_efficient_backward(at, scratch);
  if (size_of(at.input(0).dtype) == 2) flash_backward(at, scratch);
}

// cuda/Embedding.cu and EmbeddingBackwardKernel.cu: few indices are added up one by one; more are
// sorted, and cut into segments of ten and less, each with an fp32 sum.
void embedding_backward(const Place& at, Scratch& scratch) {
  constexpr std::int64_t few = 3072, rows_per_segment = 10, index_bytes = 8;
  if (!at.makes_gradient(1)) return;
  const std::int64_t indices = numel(at.input(0).shape);
  const Shape& table = at.input(1).shape;
  if (indices <= few) return;
  const std::int64_t words = std::min(indices, table[0]);
  const std::int64_t segments = indices / rows_per_segment + words;
  for (int list = 0; list < 3; ++list) scratch.add(index_bytes * indices);
  scratch.add(index_bytes * words), scratch.add(index_bytes * words);
  scratch.add(index_bytes * segments);
  scratch.add(4 * segments * table[1]);
}

// The gradient of something that was spread over leading axes: a sum of each column.
void broadcast_backward(const Place& at, Scratch& scratch) {
  const std::int64_t all = numel(at.output(0).shape);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t own = numel(at.input(i).shape);
    if (own == all || own == 0 || !at.makes_gradient(i)) continue;
    const Shape &whole = at.output(0).shape, &part = at.input(i).shape;
    std::int64_t columns = 1;  // of the axes behind the last one that is spread
    for (std::size_t axis = 0; axis < std::min(whole.rank(), part.rank()); ++axis) {
      if (part.back(axis) != whole.back(axis)) break;
      columns *= part.back(axis);
    }
    if (columns == own) add_column_sum(at, all / own, own, scratch);
  }
}

// The sum of the weight's gradient, if the tensors inside (inner_tensors.h) are not more later.
void rms_norm_backward(const Place& at, Scratch& scratch) {
  if (at.op.outputs < 3 || !at.makes_gradient(1)) return;
  const Tensor& y = at.output(0);
  std::int64_t inner = 0;
  for (const BufferId written : at.schedule.writes(at.run))
    if (at.schedule[written].role == Role::Temporary) inner += at.schedule[written].size.count;
  if (inner <= size(y).count) add_column_sum(at, rows_of(y.shape), y.shape.back(), scratch);
}

void of_backward(const Place& at, Scratch& scratch) {
  switch (at.op.kind) {
    case OpKind::Linear:
      return linear_backward(at, scratch);
    case OpKind::FlashAttention:
      return attention_backward(at, scratch);
    case OpKind::Embedding:
      return embedding_backward(at, scratch);
    case OpKind::Add:
    case OpKind::Mul:
      return broadcast_backward(at, scratch);
    case OpKind::RmsNorm:
      return rms_norm_backward(at, scratch);
    case OpKind::Softmax:  // cuda/SoftMax.cu: dy · y is a tensor
      return scratch.add(size(at.output(0)).count);
    case OpKind::MatMul:
      return scratch.add(product(at));
    case OpKind::Conv2d:
    case OpKind::LayerNorm:
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::Gelu:
    case OpKind::GeluComposed:
    case OpKind::Silu:
    case OpKind::Tanh:
    case OpKind::Sigmoid:
    case OpKind::Relu:
    case OpKind::ReGelu2:
    case OpKind::ReSilu2:
    case OpKind::LogSoftmax:
    case OpKind::Scale:
    case OpKind::Average:
    case OpKind::Dropout:
    case OpKind::DropPath:
    case OpKind::Cast:
    case OpKind::Rope:
    case OpKind::View:
    case OpKind::Select:
    case OpKind::Split:
    case OpKind::Copy:
    case OpKind::Concat:
    case OpKind::RepeatHeads:
    case OpKind::MeanPool:
    case OpKind::MaxPool:
    case OpKind::Replicate:
    case OpKind::AllReduce:
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::Scatter:
    case OpKind::Receive:
    case OpKind::Send:
    case OpKind::NllLoss:
    case OpKind::VocabularyLoss:
      return;
    case OpKind::Opaque:
      return scratch.add(opaque_row(at.trace, at.op)->backward.scratch.count);
  }
}

void of_forward(const Place& at, Scratch& scratch) {
  if (at.op.kind == OpKind::Linear) linear_forward(at, scratch);
  if (at.op.kind == OpKind::MatMul) scratch.add(product(at));
  if (const OpaqueRow* row = opaque_row(at.trace, at.op)) scratch.add(row->forward.scratch.count);
}

void add_scratch(const Place& at, Scratch& scratch) {
  if (at.run.task == Task::Backward || at.run.task == Task::WeightGradient)
    of_backward(at, scratch);
  else if (at.run.task == Task::Forward || at.run.task == Task::Recompute)
    of_forward(at, scratch);
}

int threads_per_multiprocessor(const Device& device) {
  const int capability = capability_of(device).value_or(80);
  if (capability == 75) return 1024;
  return capability == 86 || capability == 89 || capability >= 120 ? 1536 : 2048;
}

}  // namespace

// cuda/Reduce.cuh, setReduceConfig(), for a sum in fp32 over the slow axis. Rows are split over the
// warps of a block, and over blocks where each thread would still have 256 or more to add; then
// every thread of every block writes what it has.
std::int64_t column_sum_staging(std::int64_t rows, std::int64_t columns, const Device& device) {
  constexpr std::int64_t warp = 32, most_threads = 512, least_rows = 16, most_rows = 256;
  std::int64_t vector = 4;
  while (columns % vector != 0) vector /= 2;
  const std::int64_t threads = most_threads / vector;
  const auto power_below = [&](std::int64_t n) {
    if (n >= threads) return threads;
    return static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  };
  const std::int64_t along_columns = power_below(columns / vector), along_rows = power_below(rows);
  std::int64_t width = std::min(along_columns, warp);
  const std::int64_t height = std::min(along_rows, threads / width);
  width = std::min(along_columns, threads / height);
  std::int64_t rows_of_thread = rows;
  if (rows_of_thread < std::min(height * 16, most_rows)) return 0;  // no split over warps
  rows_of_thread = ceil_div(rows, height);
  const std::int64_t grid = ceil_div(columns / vector, width);
  const std::int64_t most_blocks =
      device.sm_count * (threads_per_multiprocessor(device) / (width * height));
  if (rows_of_thread < most_rows || grid > most_blocks) return 0;
  const std::int64_t blocks =
      std::max(std::min(ceil_div(most_blocks, grid), ceil_div(rows_of_thread, least_rows)),
               ceil_div(rows_of_thread, most_rows));
  return blocks < 2 ? 0 : 4 * columns * blocks * width * vector;
}

namespace {

// Adafactor's mean over rows comes before the estimate of the variance, and so only what it stages
// beyond that counts. Of several matrices at once the estimates are more.
void of_update(const Trace& trace, const Schedule& schedule, const Run& run, const Device& device,
               Scratch& scratch) {
  const OptimizerRow& row = row_of(trace.step.optimizer);
  const bool is_factored = row.state == StateKind::Factored || row.state == StateKind::FactoredFp32;
  if (!is_factored || update_form_of(trace.step, row) != OptimizerForm::ForLoop) return;
  std::int64_t most = 0;
  for (const BufferId buffer : schedule.writes(run)) {
    const Shape& shape = trace[schedule[buffer].tensor].shape;
    if (schedule[buffer].role != Role::Value || shape.rank() < 2) continue;
    const DType estimate =
        row.state == StateKind::Factored ? trace[schedule[buffer].tensor].dtype : DType::Float32;
    most = std::max(most, column_sum_staging(shape.back(1), shape.back(), device) -
                              size_of(estimate) * numel(shape));
  }
  scratch.add(most);
}

}  // namespace

// CUBLAS_WORKSPACE_CONFIG's default, as PyTorch allocates it: 4096·1024·2 + 16·1024·8 bytes, and
// 32 MiB on compute capability 9.0, in later versions from there on.
Bytes blas_workspace(const Framework& framework, const Device& device) {
  const int capability = capability_of(device).value_or(80);
  if (framework.deterministic_workspace) return Bytes{8 * 4096 * 1024};
  const bool is_large = framework.blackwell_workspace ? capability >= 90 : capability == 90;
  return Bytes{is_large ? 32 * 1024 * 1024 : 8'519'680};
}

// module/base.py of Transformer Engine: 4 MiB, and from compute capability 9.0 on 32 MiB and 1 KiB.
Bytes engine_workspace(const Device& device) {
  constexpr std::int64_t mib = 1 << 20;
  return Bytes{capability_of(device).value_or(80) >= 90 ? 32 * mib + 1024 : 4 * mib};
}

// get_multi_stream_cublas_workspace() of the same file, of as many streams as
// common/include/transformer_engine/multi_streams.h has. Routers of Megatron-LM's experts multiply
// by its kernels whatever layers are of (RouterGatingLinearFunction of
// core/transformer/moe/moe_utils.py).
int engine_workspaces(const Trace& trace) {
  constexpr int streams = 4;
  const Framework& framework = find_framework(trace.step.framework);
  if (!framework.transformer_engine)
    return framework.megatron && std::ranges::any_of(trace.ops, [&](const Op& op) {
             return expert_op(trace, op) == ExpertOp::Gate;
           });
  const bool is_grouped =
      std::ranges::any_of(trace.ops, [&](const Op& op) { return is_grouped_product(trace, op); });
  return is_grouped ? 1 + streams : 1;
}

Bytes score_buffer(const Trace& trace) {
  Bytes largest;
  if (!find_framework(trace.step.framework).keeps_score_buffer) return largest;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::Softmax) largest = std::max(largest, size(trace[trace.inputs(op)[0]]));
  return largest;
}

// The device is looked at last: few runs take any.
Scratch scratch_of(const Trace& trace, const Schedule& schedule, const Run& run,
                   const Device& device) {
  Scratch scratch;
  if (run.task == Task::Optimizer && trace.update)
    scratch.add(trace.update->pass.scratch.count);
  else if (run.task == Task::Optimizer)
    of_update(trace, schedule, run, device, scratch);
  if (run.op != no_op) add_scratch({trace, schedule, run, device, trace[run.op]}, scratch);
  if (scratch.requests().empty() || capability_of(device)) return scratch;
  return {};
}

}  // namespace tidemark
