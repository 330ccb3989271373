// The cost of each run by task and kind of op: roofline first, then the device's measured curves.
#include "simulator/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/cost/curve_keys.h"
#include "simulator/cost/product.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/collectives.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/user_buffers.h"
#include "traces/exchange_axis.h"
#include "traces/optimizer_of.h"

namespace tidemark {
namespace {

constexpr double wide_element = 4;  // bytes of fp32

// Of many parameters together, for the update.
bool has_wide_gradients(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  return sharing && (is_zero(sharing->kind) || sharing->kind == Sharding::Kind::Megatron);
}

double count_of(Bytes bytes) { return static_cast<double>(bytes.count); }

double count(const Tensor& tensor) { return static_cast<double>(numel(tensor.shape)); }

}  // namespace

CostModel::CostModel(const Trace& trace, const Needs& needs, const Device& device,
                     bool moves_paged_states)
    : trace_(trace),
      device_(device),
      framework_(find_framework(trace.step.framework)),
      kernels_(device, precision_of(trace.step)),
      traffic_(trace, needs),
      alike_(find_alike_ops(trace, needs, traffic_)),
      updated_(updated_elements(trace)),
      beside_(products_beside_exchanges(trace)),
      buffers_are_wide_(has_wide_gradients(trace.step)),
      moves_paged_states_(moves_paged_states) {
  tabulate();
}

Cost CostModel::forward(const Op& op) const {
  const double bytes = traffic_.forward(op);
  switch (row_of(op.kind).work) {
    case Work::None:
      return {};
    case Work::Linear:
    case Work::BatchedProduct:
    case Work::Convolution: {
      const Product p = product_of(trace_, op);
      return kernels_.product(p.batch, p.m, p.n, p.k, trace_[trace_.inputs(op)[0]].dtype, bytes,
                              row_alignment(trace_, op));
    }
    case Work::Attention: {
      const Product p = product_of(trace_, op);
      const DType dtype = trace_[trace_.inputs(op)[0]].dtype;
      return beside_ring(op, kernels_.attention(p.batch, p.m, p.n, p.k, dtype, bytes), 1);
    }
    case Work::Exchange:
      return {};  // what is received: who sends it takes the time
    case Work::Elementwise:
    case Work::GatherRows:
    case Work::PickOnePerRow:
      if (op.kind == OpKind::VocabularyLoss) return vocabulary_loss(op, bytes);
      return kernels_.elementwise(bytes, count(trace_[trace_.outputs(op)[0]]),
                                  traffic_.forward_kernels(op));
    case Work::Opaque:
      return opaque(op, opaque_row(trace_, op)->forward, bytes,
                    count(trace_[trace_.outputs(op)[0]]));
  }
  return {};
}

// On the units for what its row names, or for the first floating-point number that it reads, or
// writes.
Cost CostModel::opaque(const Op& op, const OpaquePass& pass, double bytes, double elements) const {
  DType math = DType::Float32;
  const auto is_number = [&](TensorId tensor) { return is_floating(trace_[tensor].dtype); };
  for (const auto& operands : {trace_.outputs(op), trace_.inputs(op)})
    if (const auto found = std::ranges::find_if(operands, is_number); found != operands.end())
      math = trace_[*found].dtype;
  const bool streams = pass.streamed > Bytes{} && pass.kernels > 1;
  const Cost product = kernels_.with_flops(static_cast<double>(pass.flops.value_or(0)),
                                           opaque_row(trace_, op)->math.value_or(math), bytes,
                                           elements, streams ? 1 : pass.kernels);
  if (!streams) return product;
  return then(kernels_.elementwise(count_of(pass.streamed), elements, pass.kernels - 1), product);
}

// dx = dy · b, db = dyᵀ · a; a bias sums up dy.
Cost CostModel::product_gradient(const Op& op, const GradientTraffic& moved) const {
  const Product p = product_of(trace_, op);
  const DType dtype = trace_[trace_.inputs(op)[0]].dtype;
  const int rows = row_alignment(trace_, op);
  if (moved.input == 0) return kernels_.product(p.batch, p.m, p.k, p.n, dtype, moved.bytes, rows);
  if (moved.input == 1) return kernels_.product(p.batch, p.k, p.n, p.m, dtype, moved.bytes, rows);
  return kernels_.elementwise(moved.bytes, moved.elements, moved.kernels);
}

// A small kernel multiplies output and gradient row by row; then five products instead of two
// (arXiv 2205.14135, section B.4).
Cost CostModel::attention_gradient(const Op& op, const GradientTraffic& moved) const {
  const Product p = product_of(trace_, op);
  const Tensor& y = trace_[trace_.outputs(op)[0]];
  const double rows = 2 * count_of(size(y));
  constexpr double keys_and_gradients = 2;  // go round together
  return then(
      kernels_.elementwise(rows, count(y), 1),
      beside_ring(op,
                  kernels_.attention(p.batch, p.m, p.n, p.k * 5 / 2, y.dtype, moved.bytes - rows),
                  keys_and_gradients));
}

// A part of the keys and values is met while the next one comes, but for the last; each rank sends
// as much as it gets. `times`: what is sent beside each.
Cost CostModel::beside_ring(const Op& op, Cost attention, double times) const {
  if (!passes_keys_around(trace_.step)) return attention;
  const auto inputs = trace_.inputs(op);
  const Bytes keys = size(trace_[inputs[1]]);
  const Bytes both = inputs[1] == inputs[2] ? keys : keys + size(trace_[inputs[2]]);
  const auto parts = static_cast<double>(trace_.step.mesh[Axis::Context]);
  const auto sent = static_cast<std::int64_t>(times * count_of(both) / parts_of_ring);
  const double passing =
      static_cast<double>(collective({Pattern::Send, Axis::Context, Bytes{sent}}).time.count());
  const double meeting = static_cast<double>(attention.time.count()) / parts;
  attention.time = rounded_ns(meeting + (parts - 1) * std::max(meeting, passing));
  attention.kernels *= static_cast<int>(parts);
  return attention;
}

Cost CostModel::norm_gradient(const Op& op, const GradientTraffic& moved) const {
  const bool is_of_x = moved.input == 0;
  if (is_of_x || !framework_.norm_gradient_by_columns)
    return kernels_.elementwise(moved.bytes, moved.elements, moved.kernels);
  const Tensor& x = trace_[trace_.inputs(op)[0]];
  return kernels_.sum_by_columns(moved.bytes, static_cast<double>(x.shape.back()));
}

Cost CostModel::gradient(const Op& op, const GradientTraffic& moved) const {
  switch (row_of(op.kind).work) {
    case Work::Linear:
    case Work::BatchedProduct:
    case Work::Convolution:
      return product_gradient(op, moved);
    case Work::Attention:
      return attention_gradient(op, moved);
    case Work::Opaque:
      return opaque(op, opaque_row(trace_, op)->backward, moved.bytes, moved.elements);
    case Work::None:
    case Work::Elementwise:
    case Work::GatherRows:
    case Work::PickOnePerRow:
      break;
    case Work::Exchange:
      return {};
  }
  if (op.kind == OpKind::LayerNorm) return norm_gradient(op, moved);
  if (op.kind == OpKind::VocabularyLoss && has_native_loss(trace_.step))
    return native_loss_gradient(op, moved);
  return kernels_.elementwise(moved.bytes, moved.elements, moved.kernels);
}

Cost CostModel::backward(const Schedule& schedule, const Run& run) const {
  Cost cost;
  for (const GradientTraffic& moved : traffic_.backward(schedule, run))
    cost = then(cost, gradient(trace_[run.op], moved));
  return cost;
}

Cost CostModel::of(const Schedule& schedule, const Run& run) const {
  if (const Cost* known = tabulated(schedule, run)) return *known;
  return compute(schedule, run);
}

void CostModel::tabulate() {
  const Schedule none;
  const auto cost_of = [&](Task task, OpId op) {
    return compute(none, {task, StreamId::Compute, op, 0, 0, 0});
  };
  forward_.reserve(alike_.first.size()), backward_.reserve(alike_.first.size());
  for (const OpId op : alike_.first) {
    forward_.push_back(cost_of(Task::Forward, op));
    const auto gradients = [&](Task task) {
      return traffic_.makes_gradients(task, op) ? cost_of(task, op) : Cost();
    };
    backward_.push_back(gradients(Task::Backward));
    if (traffic_.splits_backward()) weights_.push_back(gradients(Task::WeightGradient));
  }
}

const Cost* CostModel::tabulated(const Schedule& schedule, const Run& run) const {
  if (run.op == no_op || is_beside_products(run)) return nullptr;
  const std::uint32_t group = alike_.group[index(run.op)];
  const auto is_code = [&](BufferId buffer) { return schedule[buffer].role == Role::Codes; };
  if (run.task == Task::Forward || run.task == Task::Recompute)
    return moves_ranges(schedule, run) ? nullptr : &forward_[group];
  const bool makes_gradients = run.task == Task::Backward || run.task == Task::WeightGradient;
  if (!makes_gradients || std::ranges::any_of(schedule.reads(run), is_code)) return nullptr;
  return run.task == Task::Backward ? &backward_[group] : &weights_[group];
}

Cost CostModel::compute(const Schedule& schedule, const Run& run) const {
  Cost cost = roofline(schedule, run);
  if (exchange_of(trace_, schedule, run)) return cost;
  cost.sm_share *= device_.product_share.value_or(1);
  cost.memory_share *= device_.stream_share.value_or(1);
  if (device_.curves.empty() || cost.time <= Nanoseconds{}) return cost;
  const Curve* const curve = curve_of(schedule, run);
  if (!curve) return cost;
  const double time = std::max(1.0, time_on(*curve, static_cast<double>(cost.time.count())));
  // The bytes stay, so a slower kernel uses less of the bandwidth.
  cost.memory_share =
      std::min(1.0, cost.bytes / time / kernels_.bytes_per_ns() * device_.stream_share.value_or(1));
  cost.time = rounded_ns(time);
  return cost;
}

// Of what is most alike, else of its kind.
const Curve* CostModel::curve_of(const Schedule& schedule, const Run& run) const {
  const CurveKeys keys = curve_keys(trace_, schedule, run);
  for (const std::string& key : {keys.alike, keys.kind})
    if (const auto found = device_.curves.find(key); found != device_.curves.end())
      return &found->second;
  return nullptr;
}

// Delayed ranges move before the extremes of this step are noted: in the forward where that does.
bool CostModel::moves_ranges(const Schedule& schedule, const Run& run) const {
  if (schedule.encodings.empty()) return false;  // most schedules code nothing
  return std::ranges::any_of(schedule.writes(run), [&](BufferId id) {
    const Buffer& buffer = schedule[id];
    return buffer.role == Role::Ranges && schedule.encodings[buffer.encoding].delayed;
  });
}

// Codes that are written in passing are bytes more, and no kernel; moving the range is a tiny one.
Cost CostModel::forward(const Schedule& schedule, const Run& run) const {
  const Cost alone = forward(trace_[run.op]);
  if (!moves_ranges(schedule, run)) return alone;
  int ranges = 0;
  double codes = 0;
  for (const BufferId id : schedule.writes(run)) {
    if (schedule[id].role == Role::Ranges) ++ranges;
    if (schedule[id].role == Role::Codes) codes += count_of(schedule[id].size);
  }
  return then(alone, kernels_.elementwise(codes, codes, ranges));
}

namespace {

/// How often codes are made in so many kernels that walk over the value, and tiny ones.
struct Coding {
  int walks, kernels;
};

// Integers: one pass for minimum and maximum if the producer did not note them, a tiny one for the
// range, one that rounds. Delayed, that pass notes them, or what noted them has moved the range,
// too; but codes that share a byte are made in a pass of their own. Floats: one pass, with one
// magnitude for all a tiny kernel that clears it and two.
Coding coding_of(const Encoding& encoding, bool knows_min_max) {
  if (!has_ranges(encoding)) return encoding.group == 0 ? Coding{2, 3} : Coding{1, 1};
  const bool is_one_pass = knows_min_max || is_coded_in_passing(encoding);
  const int walks = is_one_pass ? 1 : 2;
  return {walks, walks + (encoding.delayed && knows_min_max ? 0 : 1)};
}

}  // namespace

// Mesa's released code copies the values group by group and reads that copy three times (largest,
// smallest, codes); from codes it writes such a copy and then copies it (its custom_quant.py).
Cost CostModel::conversion(const Schedule& schedule, const Run& run) const {
  double bytes = 0, by_group = 0;
  for (const BufferId buffer : schedule.writes(run)) {
    if (schedule[buffer].role == Role::Ranges) continue;  // a few numbers, in the cache
    bytes += count_of(schedule[buffer].size);
    if (schedule[buffer].role == Role::Temporary) by_group = count_of(schedule[buffer].size);
  }
  const double read = count_of(schedule[schedule.reads(run)[0]].size);
  const bool makes_codes = run.task == Task::Quantize;
  Coding coding{1, 1};
  if (by_group > 0) {
    bytes += (makes_codes ? 3 : 1) * by_group;
    coding.kernels = makes_codes ? 4 : 2;
  } else if (makes_codes) {
    coding = coding_of(schedule.encodings[schedule[schedule.writes(run).back()].encoding],
                       row_of(trace_[run.op].kind).notes_min_max);
  }
  bytes += coding.walks * read;
  return kernels_.elementwise(bytes, bytes / 8, coding.kernels);
}

// A fused kernel reads each gradient, and reads and writes each weight and state; what runs as
// several kernels walks as often as its row says.
Cost CostModel::update(const Schedule& schedule, const Run& run) const {
  double gradients = 0, changed = 0;
  bool reads_buffers = false;  // of many gradients
  for (const BufferId buffer : schedule.reads(run)) {
    const bool is_of_many = schedule[buffer].role == Role::Temporary;
    if (!is_of_many) gradients += count_of(schedule[buffer].size);
    reads_buffers = reads_buffers || is_of_many;
  }
  const OptimizerRow* row = nullptr;
  Cost products;
  Bytes paged;
  for (const BufferId b : schedule.writes(run)) {
    const Buffer& buffer = schedule[b];
    if (buffer.role == Role::Temporary) continue;
    if (buffer.role != Role::Value && buffer.role != Role::Shard) {
      changed += count_of(buffer.size);
      continue;
    }
    const double elements = updated(buffer);
    const auto element = static_cast<double>(size_of(trace_[buffer.tensor].dtype));
    changed += updated_.empty() ? count_of(buffer.size) : elements * element;
    if (reads_buffers) gradients += elements * (buffers_are_wide_ ? wide_element : element);
    if (!row) row = &optimizer_of(trace_, buffer.tensor);
    const Bytes states = paged_state_bytes(*row, static_cast<std::int64_t>(elements));
    changed += count_of(states);
    paged += states;
    if (row->value == Optimizer::Muon) products = then(products, orthogonalization(buffer.tensor));
  }
  if (!row) return {};
  const UpdateForm& form = *row->in(update_form_of(trace_.step, *row));
  const double bytes = form.passes > 0 ? form.passes * gradients : gradients + 2 * changed;
  const Cost on_device = then(kernels_.elementwise(bytes, gradients / 4, form.kernels), products);
  if (!moves_paged_states_ || paged == Bytes{}) return on_device;
  return then(then(of_copy(paged), on_device), of_copy(paged));
}

// Elements of a parameter, or of the part that is kept or updated.
double CostModel::updated(const Buffer& buffer) const {
  if (!updated_.empty()) return static_cast<double>(updated_[index(buffer.tensor)]);
  return count_of(buffer.size) / static_cast<double>(size_of(trace_[buffer.tensor].dtype));
}

Cost CostModel::orthogonalization(TensorId matrix) const {
  constexpr double element = 2;  // bf16
  Cost cost;
  for (const MatrixProduct& of : newton_schulz(trace_[matrix].shape)) {
    const auto m = static_cast<double>(of.m), n = static_cast<double>(of.n),
               k = static_cast<double>(of.k);
    cost = then(cost,
                kernels_.product(1, m, n, k, DType::BFloat16, element * (m * n + n * k + m * k)));
  }
  return cost;
}

// What belongs to tensors is read on one side and written on the other; from buffer to buffer goes
// what both can hold.
Cost CostModel::packing(const Schedule& schedule, const Run& run) const {
  double bytes = 0;
  for (const BufferId buffer : schedule.operands_of(run))
    if (schedule[buffer].role != Role::Temporary) bytes += 2 * count_of(schedule[buffer].size);
  const auto reads = schedule.reads(run), writes = schedule.writes(run);
  if (reads.empty()) return {};  // memory alone
  if (bytes == 0) bytes = 2 * count_of(std::min(schedule[reads[0]].size, schedule[writes[0]].size));
  return kernels_.elementwise(bytes, bytes / 8, 1);
}

// To a part of a buffer of all gradients, in fp32: as large as what is added, in elements.
Cost CostModel::adding(const Schedule& schedule, const Run& run) const {
  const Buffer& added = schedule[schedule.reads(run)[0]];
  if (added.role == Role::Temporary)  // one buffer to another
    return kernels_.elementwise(3 * count_of(added.size), count_of(added.size) / 4, 1);
  const double part = 4 * count(trace_[added.tensor]);
  const double bytes = count_of(added.size) + 2 * part;
  return kernels_.elementwise(bytes, part / 4, 1);
}

// The largest logit; less it; exp; their sum; divided by it: three read and write the logits more
// than the operands say, two only read. The largest, the target's and the sum of all are each added
// up over ranks, a number per row.
Cost CostModel::vocabulary_loss(const Op& op, double bytes) const {
  const Tensor& logits = trace_[trace_.inputs(op)[0]];
  if (has_fused_loss(trace_.step)) return fused_loss(logits, bytes);
  if (has_native_loss(trace_.step)) return native_loss(trace_[trace_.outputs(op)[1]], bytes);
  constexpr double passes = 6;
  const Cost alone = kernels_.elementwise(bytes + passes * count_of(size(logits)), count(logits),
                                          traffic_.forward_kernels(op));
  if (trace_.step.mesh[Axis::Tensor] == 1) return alone;
  const Bytes per_row{numel(logits.shape) / logits.shape.back() * size_of(logits.dtype)};
  const Cost sum = collective({Pattern::AllReduce, Axis::Tensor, per_row});
  return then(alone, then(sum, then(sum, sum)));
}

// Transformer Engine's two kernels (pytorch/triton/cross_entropy.py of 2.17): one reads the logits
// for each row's largest, its sum and the target's, in fp32, which ranks gather; one reads them
// again and writes.
Cost CostModel::fused_loss(const Tensor& logits, double bytes) const {
  constexpr int kernels = 2, per_row = 3;
  const Cost alone = kernels_.elementwise(bytes + count_of(size(logits)), count(logits), kernels);
  if (trace_.step.mesh[Axis::Tensor] == 1) return alone;
  const Bytes gathered{numel(logits.shape) / logits.shape.back() * per_row *
                       size_of(DType::Float32) * trace_.step.mesh[Axis::Tensor]};
  return then(alone, collective({Pattern::AllGather, Axis::Tensor, gathered}));
}

// What PyTorch 2.6 compiles it to has six loops: fp32 and the largest; targets, two; exp and its
// sum; the loss; the division. Exp and division read and write all again. Ranks add up one number
// of each row, then two.
Cost CostModel::native_loss(const Tensor& softmax, double bytes) const {
  constexpr int kernels = 6, passes = 4;
  const Cost alone =
      kernels_.elementwise(bytes + passes * count_of(size(softmax)), count(softmax), kernels);
  if (trace_.step.mesh[Axis::Tensor] == 1) return alone;
  const std::int64_t per_row = size(softmax).count / softmax.shape.back();
  const auto sum_of = [&](std::int64_t numbers) {
    return collective({Pattern::AllReduce, Axis::Tensor, Bytes{numbers * per_row}});
  };
  return then(alone, then(sum_of(1), sum_of(2)));
}

// A copy of the softmax, its targets, and the product with the gradient, which is written in fp32,
// too.
Cost CostModel::native_loss_gradient(const Op& op, const GradientTraffic& moved) const {
  constexpr int kernels = 3, passes = 3;
  const Tensor& softmax = trace_[trace_.outputs(op)[1]];
  return kernels_.elementwise(moved.bytes + passes * count_of(size(softmax)), moved.elements,
                              kernels);
}

// It takes thread blocks, moves memory and fills a link, each for as long as it runs.
Cost CostModel::collective(const Exchange& exchange) const {
  const Interconnect* const joined = interconnect_of(device_);
  if (!joined)
    throw InputError(fmt::format(
        "{}: no cluster of it is known (name one with --cluster; see tidemark clusters)",
        device_.title));
  const RankGroup group = group_of(trace_.step, exchange, *joined);
  const Collective made = collective_of(*joined, group, exchange.pattern, count_of(exchange.size));
  Cost cost{.time = rounded_ns(made.ns), .kernels = 1, .bytes = made.moved};
  cost.sm_share = std::min(1.0, made.blocks / std::max(1, device_.sm_count));
  cost.memory_share = std::min(1.0, made.moved / made.ns / kernels_.bytes_per_ns());
  cost.link_share = made.link_share;
  return cost;
}

bool CostModel::is_beside_products(const Run& run) const {
  return run.op != no_op && !beside_.empty() && !beside_[index(run.op)].empty();
}

Cost CostModel::exposed(const Run& run, Cost exchange) const {
  if (!is_beside_products(run)) return exchange;
  double product = 0;
  for (const OpId op : beside_[index(run.op)])
    product += static_cast<double>(forward(trace_[op]).time.count());
  const auto alone = static_cast<double>(exchange.time.count());
  exchange.time = rounded_ns(exposed_beside(run.task, trace_[run.op].kind, alone, product,
                                            trace_.step.mesh[Axis::Tensor], device_.sm_count));
  return exchange;
}

Cost CostModel::roofline(const Schedule& schedule, const Run& run) const {
  const auto total = [&](std::span<const BufferId> buffers) {
    double bytes = 0;
    for (const BufferId buffer : buffers) bytes += static_cast<double>(schedule[buffer].size.count);
    return bytes;
  };
  const auto streaming = [&] {
    const double bytes = total(schedule.reads(run)) + total(schedule.writes(run));
    return kernels_.elementwise(bytes, bytes / 8, 1);
  };
  if (const auto exchange = exchange_of(trace_, schedule, run))
    return exposed(run, collective(*exchange));
  switch (run.task) {
    case Task::Forward:
    case Task::Recompute:
      return forward(schedule, run);
    case Task::Backward:
    case Task::WeightGradient:
      return backward(schedule, run);
    case Task::Accumulate:
      if (const auto writes = schedule.writes(run);
          !writes.empty() && schedule[writes[0]].role == Role::Temporary)
        return adding(schedule, run);
      return streaming();
    case Task::Seed:
    case Task::Reconstruct:
      return streaming();
    case Task::Quantize:
    case Task::Dequantize:
      return conversion(schedule, run);
    case Task::Optimizer:
      if (trace_.update && trace_.update->pass.is_known())
        return kernels_.elementwise(
            static_cast<double>(trace_.update->pass.moved.value_or(Bytes{}).count),
            total(schedule.reads(run)) / 4, trace_.update->pass.kernels);
      return update(schedule, run);
    case Task::Pack:
      return packing(schedule, run);
    case Task::AllReduce:
    case Task::AllGather:
    case Task::ReduceScatter:
      break;
  }
  return {};
}

}  // namespace tidemark
