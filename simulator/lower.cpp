// Turns a plan into steps. Example: x1 is Recompute, x2 is Keep.
//   forward    x0 ─f1─► x1 ─f2─► x2     x1 is freed after f2
//   backward   b2 needs x1: f1 runs again, then b2, then x1 is freed for good
// Each storage has a count of reads to come; whoever brings the count to zero frees it.
// Tested by lower_test.cpp and any_plan_property_test.cpp.
#include "simulator/lower.h"

#include <algorithm>

#include "simulator/needs.h"
#include "simulator/recovery.h"
#include "simulator/stream_order.h"

namespace tidemark {
namespace {

// Lists of items per op, filled once: items(op) is a range of one flat array.
class PerOp {
 public:
  PerOp(std::size_t ops, const std::vector<OpId>& op_of_tensor) : begin_(ops + 1) {
    for (const OpId op : op_of_tensor)
      if (op != no_op) ++begin_[index(op) + 1];
    for (std::size_t i = 0; i < ops; ++i) begin_[i + 1] += begin_[i];
    items_.resize(begin_[ops]);
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t t = 0; t < op_of_tensor.size(); ++t)
      if (op_of_tensor[t] != no_op)
        items_[next[index(op_of_tensor[t])]++] = static_cast<TensorId>(t);
  }
  std::span<const TensorId> operator()(std::size_t op) const {
    return std::span(items_).subspan(begin_[op], begin_[op + 1] - begin_[op]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<TensorId> items_;
};

// The op after which a storage's forward value is no longer read, nor named by a local variable.
std::vector<OpId> forward_ends(const Trace& trace, const Needs& needs) {
  std::vector<OpId> end = needs.producer;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId input : trace.inputs(trace.ops[i]))
      if (OpId& last = end[index(trace[input].storage)]; last != no_op) last = static_cast<OpId>(i);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const OpId held = trace.tensors[t].held_until; end[t] != no_op && held != no_op)
      end[t] = std::max(end[t], held);
  return end;
}

// The op after which no local variable names what an op has made.
std::vector<OpId> held_ends(const Trace& trace, const Needs& needs) {
  std::vector<OpId> end(trace.tensors.size(), no_op);
  for (std::size_t t = 0; t < end.size(); ++t)
    if (needs.producer[t] != no_op) end[t] = trace.tensors[t].held_until;
  return end;
}

class Lowering {
 public:
  Lowering(const Trace& trace, const Plan& plan)
      : trace_(trace),
        plan_(plan),
        framework_(find_framework(trace.step.framework)),
        needs_(derive_needs(trace)),
        recovery_(derive_recovery(trace, plan, needs_)),
        forward_end_(forward_ends(trace, needs_)),
        ends_(trace.ops.size(), forward_end_),
        held_(trace.ops.size(), held_ends(trace, needs_)),
        uses_(std::move(recovery_.uses)),
        order_(out_, plan.released.synchronizes_host),
        value_(trace.tensors.size(), no_buffer),
        codes_(trace.tensors.size(), no_buffer),
        gradient_(trace.tensors.size(), no_buffer),
        on_host_(trace.tensors.size()) {
    CHECK(recovery_.defects.empty());
    if (!plan.value_release_after.empty() || !plan.gradient_release_after.empty())
      deferred_.resize(trace.ops.size());
    if (plan.released.codes_per_use) index_uses();
    reserve();
  }

  Schedule run() && {
    count_streams();
    place_persistent();
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) forward(i);
    seed();
    backward();
    optimize();
    return std::move(out_);
  }

 private:
  void reserve() {
    const std::size_t ops = trace_.ops.size(), tensors = trace_.tensors.size();
    out_.buffers.reserve(2 * tensors + ops);
    out_.steps.reserve(6 * tensors);
    out_.operands.reserve(4 * trace_.operands.size());
    references_.reserve(out_.buffers.capacity());
  }

  void index_uses() {
    first_use_.reserve(trace_.ops.size());
    std::uint32_t next = 0;
    for (const Operands saved : needs_.saved) {
      first_use_.push_back(next);
      next += static_cast<std::uint32_t>(__builtin_popcount(saved));
    }
    use_codes_.assign(next, no_buffer);
  }

  void count_streams() {
    if (!plan_.overlap || plan_.regions.empty()) return;
    first_stream_ = plan_.released.two_new_streams ? 1 : 0;
    out_.streams = first_stream_ + 2;
  }

  // --- buffers -----------------------------------------------------------------------------------

  BufferId make_buffer(Bytes bytes, TensorId tensor, Role role, Category category) {
    const auto id = static_cast<BufferId>(out_.buffers.size());
    out_.buffers.push_back({bytes, tensor, role, category, stream_, false});
    references_.push_back(1);
    return id;
  }

  BufferId allocate(Bytes bytes, TensorId tensor, Role role, Category category) {
    const BufferId id = make_buffer(bytes, tensor, role, category);
    out_.steps.emplace_back(Allocate{id});
    return id;
  }

  BufferId place(Bytes bytes, TensorId tensor, Role role, Category category) {
    const BufferId id = make_buffer(bytes, tensor, role, category);
    out_.buffers[index(id)].persistent = true;
    return id;
  }

  BufferId allocate_value(TensorId storage) {
    const Tensor& tensor = trace_[storage];
    return value_[index(storage)] = allocate(size(tensor), storage, Role::Value, tensor.category);
  }

  void place_persistent() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      const auto id = static_cast<TensorId>(t);
      if (needs_.producer[t] != no_op || tensor.storage != id) continue;
      value_[t] = place(size(tensor), id, Role::Value, tensor.category);
    }
    state_.assign(trace_.tensors.size(), no_buffer);
    find_learners();
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t)
      if (trace_.tensors[t].category == Category::Parameter &&
          trace_.tensors[t].storage == static_cast<TensorId>(t))
        place_training_state(static_cast<TensorId>(t));
  }

  // A weight that the loss does not depend on never gets a gradient, and so no state.
  void find_learners() {
    learns_.resize(trace_.tensors.size());
    for (std::size_t i = 0; i < trace_.ops.size(); ++i)
      for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
        const auto input = static_cast<std::size_t>(__builtin_ctz(bits));
        learns_[index(trace_.inputs(trace_.ops[i])[input])] = true;
      }
  }

  void place_training_state(TensorId parameter) {
    const Tensor& tensor = trace_[parameter];
    const Bytes bytes = size(tensor);
    // The moving average covers all weights, trained or not.
    if (trace_.step.ema.value_or(false))
      place(bytes, parameter, Role::OptimizerState, Category::OptimizerState);
    if (!tensor.trainable || !learns_[index(parameter)]) return;
    const OptimizerRow& row = optimizers[static_cast<std::size_t>(trace_.step.optimizer)];
    const std::int64_t per_element = row.state_bytes ? row.state_bytes : size_of(tensor.dtype);
    if (row.states > 0)
      state_[index(parameter)] = place({row.states * per_element * numel(tensor.shape)}, parameter,
                                       Role::OptimizerState, Category::OptimizerState);
    if (framework_.gradients_persist)
      gradient_[index(parameter)] = place(bytes, parameter, Role::Gradient, Category::Gradient);
    if (trace_.step.ddp) place(bytes, parameter, Role::Temporary, Category::Gradient);
  }

  void free(BufferId buffer) {
    if (!out_[buffer].persistent) order_.free(buffer, stream_);
  }

  // Frees in the backward phase, unless a variable of the published code still names the tensor.
  void release(BufferId buffer, TensorId named, const std::vector<OpId>& release_after) {
    if (!release_after.empty() && named != no_tensor && in_backward_) {
      const OpId until = release_after[index(named)];
      if (until != no_op && position_ > index(until)) {
        deferred_[index(until)].push_back(buffer);
        return;
      }
    }
    free(buffer);
  }

  void unreference(BufferId buffer) {
    if (--references_[index(buffer)] == 0)
      release(buffer, held_name(buffer), plan_.gradient_release_after);
  }

  // The coupling state whose gradient a variable of the published code calls this buffer.
  TensorId held_name(BufferId buffer) const {
    return index(buffer) < held_name_.size() ? held_name_[index(buffer)] : no_tensor;
  }

  // --- values ------------------------------------------------------------------------------------

  void drop_value(TensorId storage) {
    BufferId& buffer = value_[index(storage)];
    if (buffer == no_buffer) return;
    release(buffer, storage, plan_.value_release_after);
    if (!out_[buffer].persistent) buffer = no_buffer;
  }

  void drop_codes(BufferId& codes) {
    if (codes == no_buffer) return;
    free(codes);
    codes = no_buffer;
  }

  // One read less to come. While ops run again, their local variables hold values as before.
  void used(TensorId storage, std::size_t frame_end = 0, std::size_t at = 0) {
    if (--uses_[index(storage)] > 0) return;
    const OpId held = trace_[storage].held_until;
    if (held != no_op && index(held) > at && index(held) < frame_end) return;
    forget(storage);
  }

  void forget(TensorId storage) {
    drop_value(storage);
    drop_codes(codes_[index(storage)]);
  }

  void copy_out(BufferId buffer) {
    order_.before_run(stream_, {buffer}, {});
    out_.steps.emplace_back(CopyOut{buffer, stream_});
  }

  void copy_in(BufferId buffer) {
    order_.before_run(stream_, {}, {buffer});
    out_.steps.emplace_back(CopyIn{buffer, stream_});
  }

  void ensure_present(TensorId storage) {
    if (value_[index(storage)] != no_buffer) return;
    if (on_host_[index(storage)]) return copy_in(allocate_value(storage));
    CHECK(codes_[index(storage)] != no_buffer);
    dequantize(codes_[index(storage)], storage);
  }

  void dequantize(BufferId codes, TensorId storage) {
    BufferId raw = no_buffer;
    const Tensor& tensor = trace_[storage];
    if (plan_.released.dequantizes_in_two)
      raw = allocate(size(tensor), storage, Role::Temporary, Category::Temporary);
    reads_.assign(1, codes);
    writes_.assign(1, allocate_value(storage));
    if (raw != no_buffer) writes_.push_back(raw);
    emit(Task::Dequantize, needs_.producer[index(storage)]);
    if (raw != no_buffer) free(raw);
  }

  BufferId quantize(TensorId storage) {
    const BufferId codes =
        allocate({numel(trace_[storage].shape)}, storage, Role::Codes, Category::Activation);
    reads_.assign(1, value_[index(storage)]);
    writes_.assign(1, codes);
    emit(Task::Quantize, needs_.producer[index(storage)]);
    return codes;
  }

  // --- running -----------------------------------------------------------------------------------

  static void add_once(std::vector<BufferId>& list, BufferId buffer) {
    if (std::ranges::find(list, buffer) == list.end()) list.push_back(buffer);
  }

  void emit(Task task, OpId op) {
    order_.before_run(stream_, reads_, writes_);
    const auto first = static_cast<std::uint32_t>(out_.operands.size());
    out_.operands.insert(out_.operands.end(), reads_.begin(), reads_.end());
    out_.operands.insert(out_.operands.end(), writes_.begin(), writes_.end());
    out_.steps.emplace_back(Run{task, stream_, op, first, static_cast<std::uint32_t>(reads_.size()),
                                static_cast<std::uint32_t>(writes_.size())});
  }

  void run_op(Task task, std::size_t i) {
    const Op& op = trace_.ops[i];
    for (const TensorId input : trace_.inputs(op)) ensure_present(trace_[input].storage);
    for (const TensorId output : trace_.outputs(op))  // a kept one is written the same again
      if (trace_[output].storage == output && value_[index(output)] == no_buffer)
        allocate_value(output);
    reads_.clear(), writes_.clear();
    for (const TensorId input : trace_.inputs(op))
      add_once(reads_, value_[index(trace_[input].storage)]);
    for (const TensorId output : trace_.outputs(op))
      add_once(writes_, value_[index(trace_[output].storage)]);
    emit(task, static_cast<OpId>(i));
  }

  void forward(std::size_t i) {
    if (!is_view(trace_.ops[i].kind)) run_op(Task::Forward, i);
    if (plan_.released.codes_per_use) quantize_operands(i);
    for (const TensorId storage : ends_(i)) end_forward(storage);
  }

  void end_forward(TensorId storage) {
    const std::size_t s = index(storage);
    const Action action = plan_.actions[s];
    const OpId producer = needs_.producer[s];
    const bool made_again =
        needs_.uses[s] == 0 && recovery_.reruns[index(producer)] && !recovery_.reads_kept[s];
    if (uses_[s] == 0 || made_again) return drop_value(storage);
    switch (action) {
      case Action::Keep:
        return;
      case Action::Quantize:
        codes_[s] = quantize(storage);
        break;
      case Action::Offload:
        copy_out(value_[s]);
        on_host_[s] = true;
        break;
      case Action::Recompute:
      case Action::Reconstruct:
        break;
    }
    drop_value(storage);
  }

  void quantize_operands(std::size_t i) {
    std::uint32_t use = first_use_[i];
    for_each_operand(trace_, trace_.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
      if (plan_.actions[index(storage)] == Action::Quantize) {
        use_codes_[use] = quantize(storage);
        --uses_[index(storage)];
      }
      ++use;
    });
  }

  // --- gradients ---------------------------------------------------------------------------------

  void seed() {
    in_backward_ = true;
    position_ = trace_.ops.size();
    const auto is_zero = [](std::uint32_t gradients) { return gradients == 0; };
    if (std::ranges::all_of(needs_.gradients, is_zero)) return;
    gradient_[index(trace_.loss)] =
        allocate(size(trace_[trace_.loss]), trace_.loss, Role::Gradient, Category::Temporary);
    reads_.clear();
    writes_.assign(1, gradient_[index(trace_.loss)]);
    emit(Task::Seed, needs_.producer[index(trace_[trace_.loss].storage)]);
  }

  bool is_leaf(TensorId tensor) const { return trace_[tensor].trainable; }

  BufferId allocate_gradient(TensorId tensor) {
    const bool becomes_leaf_gradient = is_leaf(tensor) && gradient_[index(tensor)] == no_buffer;
    return allocate(size(trace_[tensor]), tensor, Role::Gradient,
                    becomes_leaf_gradient ? Category::Gradient : Category::Temporary);
  }

  void accumulate(BufferId into, BufferId contribution, BufferId result) {
    reads_.assign(1, contribution);
    if (into != no_buffer) reads_.push_back(into);  // may be the same: then it holds both
    writes_.assign(1, result);
    emit(Task::Accumulate, position_ < trace_.ops.size() ? static_cast<OpId>(position_) : no_op);
  }

  void contribute(TensorId tensor, BufferId contribution) {
    BufferId& slot = gradient_[index(tensor)];
    if (slot == no_buffer) {
      const bool adopts = !is_leaf(tensor) || out_[contribution].category == Category::Gradient;
      if (adopts) {
        name_gradient(contribution, tensor);
        slot = contribution;
        return;
      }
      slot = allocate_gradient(tensor);
      accumulate(no_buffer, contribution, slot);
      return unreference(contribution);
    }
    const bool is_part = out_[slot].size != size(trace_[tensor]);  // of a concatenation's gradient
    const bool in_place = (is_leaf(tensor) || framework_.accumulates_in_place) && !is_part;
    if (in_place && references_[index(slot)] == 1) {
      accumulate(slot, contribution, slot);
      return unreference(contribution);
    }
    const BufferId sum = allocate_gradient(tensor);
    accumulate(slot, contribution, sum);
    // The variable still names the first contribution, unless that belongs to the block behind.
    if (held_name(slot) != tensor) name_gradient(sum, tensor);
    unreference(slot);
    unreference(contribution);
    slot = sum;
  }

  void name_gradient(BufferId buffer, TensorId tensor) {
    const auto& held = plan_.gradient_release_after;
    if (held.empty() || held[index(tensor)] == no_op || held_name(buffer) != no_tensor) return;
    held_name_.resize(out_.buffers.size(), no_tensor);
    held_name_[index(buffer)] = tensor;
  }

  struct Contribution {
    TensorId tensor;
    BufferId buffer;
  };

  void backward_op(std::size_t i) {
    const Op& op = trace_.ops[i];
    if (needs_.gradients[i] == 0) return;
    std::uint32_t use = plan_.released.codes_per_use ? first_use_[i] : 0;
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      if (plan_.released.codes_per_use && use_codes_[use] != no_buffer &&
          value_[index(storage)] == no_buffer)
        dequantize(use_codes_[use], storage);
      ensure_present(storage);
      ++use;
    });
    contributions_.clear();
    const BufferId incoming = allocate_input_gradients(i);
    run_backward(i, incoming);
    release_after_backward(i);
    for (const Contribution& c : contributions_) contribute(c.tensor, c.buffer);
  }

  // Gradients that alias the incoming one share it; the others get memory.
  BufferId allocate_input_gradients(std::size_t i) {
    const Op& op = trace_.ops[i];
    const BufferId incoming = gradient_[index(trace_.outputs(op)[0])];
    const auto inputs = trace_.inputs(op);
    for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto k = static_cast<std::size_t>(__builtin_ctz(bits));
      const TensorId input = inputs[k];
      if (shares_gradient(op, k, input)) {
        ++references_[index(incoming)];
        contributions_.push_back({input, incoming});
      } else {
        contributions_.push_back({input, allocate_gradient(input)});
      }
    }
    return incoming;
  }

  bool shares_gradient(const Op& op, std::size_t k, TensorId input) const {
    const Flow flow = gradient_rule(op.kind, k).flow;
    if (flow == Flow::Fresh) return false;
    const Tensor& in = trace_[input];
    const Tensor& out = trace_[trace_.outputs(op)[0]];
    if (in.dtype != out.dtype) return false;
    return flow == Flow::Alias || numel(in.shape) == numel(out.shape);
  }

  void run_backward(std::size_t i, BufferId incoming) {
    const Op& op = trace_.ops[i];
    const BufferId batched = allocate_batched_weight_gradient(i);
    reads_.clear(), writes_.clear();
    for (const TensorId output : trace_.outputs(op))
      if (gradient_[index(output)] != no_buffer) add_once(reads_, gradient_[index(output)]);
    for_each_operand(trace_, op, needs_.saved[i],
                     [&](TensorId storage, TensorId) { add_once(reads_, value_[index(storage)]); });
    for (const Contribution& c : contributions_)
      if (c.buffer != incoming) add_once(writes_, c.buffer);
    if (batched != no_buffer) writes_.push_back(batched);
    if (!writes_.empty()) emit(Task::Backward, static_cast<OpId>(i));
    if (batched != no_buffer) free(batched);
  }

  // Mesa's public linear multiplies gᵀ·x per sample and sums afterwards.
  BufferId allocate_batched_weight_gradient(std::size_t i) {
    const Op& op = trace_.ops[i];
    constexpr std::uint32_t of_weight = 2;
    if (!plan_.released.batched_weight_gradient || op.kind != OpKind::Linear ||
        (needs_.gradients[i] & of_weight) == 0)
      return no_buffer;
    const Tensor& x = trace_[trace_.inputs(op)[0]];
    const Tensor& weight = trace_[trace_.inputs(op)[1]];
    if (x.shape.rank() < 3) return no_buffer;
    return allocate({x.shape[0] * size(weight).count}, no_tensor, Role::Temporary,
                    Category::Temporary);
  }

  void release_after_backward(std::size_t i) {
    const Op& op = trace_.ops[i];
    for (const TensorId output : trace_.outputs(op)) {
      BufferId& slot = gradient_[index(output)];
      if (slot != no_buffer) unreference(slot);
      slot = no_buffer;
    }
    std::uint32_t use = plan_.released.codes_per_use ? first_use_[i] : 0;
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      if (plan_.released.codes_per_use && use_codes_[use] != no_buffer) {
        drop_value(storage);
        drop_codes(use_codes_[use]);
      } else {
        used(storage);
      }
      ++use;
    });
  }

  // --- recovery ----------------------------------------------------------------------------------

  void recover(const Region& region) {
    recover_ops(index(region.split), index(region.end));
    recover_ops(index(region.begin), index(region.split));
  }

  void recover_ops(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (recovery_.reruns[i]) rerun(i, end);
      if (recovery_.inverts[i]) invert(i, end);
      for (const TensorId storage : held_(i))  // the function returns: its variables go
        if (uses_[index(storage)] == 0) forget(storage);
    }
  }

  void rerun(std::size_t i, std::size_t frame_end) {
    const Op& op = trace_.ops[i];
    run_op(Task::Recompute, i);
    for (const TensorId input : trace_.inputs(op)) used(trace_[input].storage, frame_end, i);
    for (const TensorId output : trace_.outputs(op))
      if (uses_[index(output)] == 0 && trace_[output].storage == output) drop_value(output);
  }

  void invert(std::size_t i, std::size_t frame_end) {
    const Op& op = trace_.ops[i];
    const TensorId shortcut = trace_[trace_.inputs(op)[0]].storage;
    const TensorId branch = trace_[trace_.inputs(op)[1]].storage;
    const TensorId sum = trace_[trace_.outputs(op)[0]].storage;
    ensure_present(sum);
    ensure_present(branch);
    if (value_[index(shortcut)] == no_buffer && uses_[index(shortcut)] > 0) {
      reads_.assign({value_[index(sum)], value_[index(branch)]});
      writes_.assign(1, allocate_value(shortcut));
      emit(Task::Reconstruct, static_cast<OpId>(i));
    }
    used(sum, frame_end, i);
    used(branch, frame_end, i);
  }

  // --- the order of the backward -----------------------------------------------------------------

  void backward() {
    std::size_t region = plan_.regions.size();
    for (std::size_t op = trace_.ops.size(); op > 0;) {
      if (region > 0 && index(plan_.regions[region - 1].end) == op) {
        --region;
        backward_region(region);
        op = index(plan_.regions[region].begin);
      } else {
        gradients_of(--op);
      }
    }
    stream_ = StreamId::Compute;
    order_.join(stream_);
  }

  void gradients_of(std::size_t op) {
    position_ = op;
    backward_op(op);
    if (deferred_.empty()) return;
    for (const BufferId buffer : deferred_[op]) free(buffer);
    deferred_[op].clear();
  }

  void gradients_of(const Region& region) {
    for (std::size_t op = index(region.end); op-- > index(region.begin);) gradients_of(op);
  }

  // With one stream: recover, then gradients. With two, each region's recovery was issued on this
  // region's stream while its successor's gradients ran on the other.
  void backward_region(std::size_t region) {
    const Region& current = plan_.regions[region];
    if (!plan_.overlap) {
      recover(current);
      gradients_of(current);
      return;
    }
    if (!is_chained(region)) start_chain(current);
    stream_ = stream_of(turn_);
    order_.follow(stream_, gradients_done_);
    gradients_of(current);
    gradients_done_ = order_.mark(stream_);
    if (region == 0 || !is_chained(region - 1)) {
      stream_ = StreamId::Compute;
      return;
    }
    stream_ = stream_of(++turn_);
    order_.follow(stream_, recovered_);
    recover(plan_.regions[region - 1]);
    recovered_ = order_.mark(stream_);
    stream_ = stream_of(turn_ - 1);  // ops between two regions stay with the gradients
  }

  // Both streams start after all that was issued before.
  void start_chain(const Region& region) {
    turn_ = 0;
    gradients_done_ = order_.mark(StreamId::Compute);
    for (const std::size_t turn : {0u, 1u}) order_.follow(stream_of(turn), gradients_done_);
    stream_ = stream_of(0);
    recover(region);
    recovered_ = order_.mark(stream_);
  }

  // Was this region's recovery issued beside the gradients of the one after it?
  bool is_chained(std::size_t region) const {
    return region + 1 < plan_.regions.size() &&
           plan_.regions[region].chain == plan_.regions[region + 1].chain;
  }

  StreamId stream_of(std::size_t turn) const {
    return static_cast<StreamId>(first_stream_ + turn % 2);
  }

  // --- optimizer ---------------------------------------------------------------------------------

  void optimize() {
    position_ = trace_.ops.size();
    if (framework_.optimizer_loop == OptimizerLoop::Foreach) {
      optimize_foreach();
    } else {
      for (std::size_t t = 0; t < trace_.tensors.size(); ++t)
        if (is_updated(t)) optimize_one(static_cast<TensorId>(t));
    }
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t)  // zero_grad(set_to_none)
      if (gradient_[t] != no_buffer) free(gradient_[t]);
  }

  bool is_updated(std::size_t t) const {
    return trace_.tensors[t].category == Category::Parameter && trace_.tensors[t].trainable &&
           gradient_[t] != no_buffer;
  }

  void add_update(std::size_t t) {
    reads_.push_back(gradient_[t]);
    writes_.push_back(value_[t]);
    if (state_[t] != no_buffer) writes_.push_back(state_[t]);
  }

  // AdamW's eager kernels write sqrt(v) and the denominator to temporaries; SGD's and the 8-bit
  // optimizer's update in place.
  int temporaries_per_parameter() const {
    if (trace_.step.optimizer != Optimizer::AdamW) return 0;
    switch (framework_.optimizer_loop) {
      case OptimizerLoop::PerParameter:
        return 2;
      case OptimizerLoop::Foreach:
        return 1;
      case OptimizerLoop::Fused:
        break;
    }
    return 0;
  }

  void add_temporaries(TensorId parameter) {
    for (int i = 0; i < temporaries_per_parameter(); ++i)
      writes_.push_back(
          allocate(size(trace_[parameter]), parameter, Role::Temporary, Category::Temporary));
  }

  void update() {
    emit(Task::Optimizer, no_op);
    for (const BufferId buffer : writes_)
      if (out_[buffer].role == Role::Temporary) free(buffer);
    reads_.clear(), writes_.clear();
  }

  void optimize_one(TensorId parameter) {
    reads_.clear(), writes_.clear();
    add_update(index(parameter));
    add_temporaries(parameter);
    update();
  }

  void optimize_foreach() {
    reads_.clear(), writes_.clear();
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      if (!is_updated(t)) continue;
      add_update(t);
      add_temporaries(static_cast<TensorId>(t));
    }
    if (!writes_.empty()) update();
  }

  const Trace& trace_;
  const Plan& plan_;
  const Framework& framework_;
  const Needs needs_;
  Recovery recovery_;
  const std::vector<OpId> forward_end_;
  const PerOp ends_, held_;
  std::vector<std::uint32_t> uses_;  ///< per storage: reads after the forward pass still to come

  Schedule out_;
  StreamOrder order_;
  StreamId stream_ = StreamId::Compute;
  std::size_t first_stream_ = 0;  ///< of the two that regions alternate between
  std::size_t turn_ = 0;
  StreamOrder::Point recovered_, gradients_done_;  ///< the last region's

  std::vector<BufferId> value_, codes_, gradient_, state_;  ///< by tensor
  std::vector<bool> on_host_, learns_;
  std::vector<std::uint32_t> references_;  ///< by buffer: gradients that share it
  std::vector<TensorId> held_name_;        ///< by buffer; only where published code is reproduced
  std::vector<std::uint32_t> first_use_;   ///< by op: index of its first saved operand
  std::vector<BufferId> use_codes_;        ///< by saved operand
  std::vector<std::vector<BufferId>> deferred_;  ///< by op: freed after its gradients
  bool in_backward_ = false;
  std::size_t position_ = 0;
  std::vector<BufferId> reads_, writes_;
  std::vector<Contribution> contributions_;
};

}  // namespace

Schedule lower(const Trace& trace, const Plan& plan) { return Lowering(trace, plan).run(); }

}  // namespace tidemark
