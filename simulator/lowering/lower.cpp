// Turns a plan into steps. Example: x1 is Recompute, x2 is Keep.
//   forward    x0 ─f1─► x1 ─f2─► x2     x1 is freed after f2
//   backward   b2 needs x1: f1 runs again, then b2, then x1 is freed for good
// Each storage has a count of reads to come; whoever brings the count to zero frees it.
// Tested by lower_test.cpp and any_plan_property_test.cpp.
#include "simulator/lowering/lower.h"

#include <algorithm>
#include <utility>

#include "simulator/lowering/codes_per_use.h"
#include "simulator/lowering/ends.h"
#include "simulator/lowering/gradients.h"
#include "simulator/lowering/optimizer_step.h"
#include "simulator/lowering/recovery.h"
#include "simulator/lowering/schedule_writer.h"
#include "simulator/lowering/values.h"
#include "simulator/needs.h"
#include "simulator/strategies/mesa.h"

namespace tidemark {
namespace {

class Lowering {
 public:
  Lowering(const Trace& trace, const Plan& plan)
      : trace_(trace),
        plan_(plan),
        needs_(derive_needs(trace)),
        recovery_(derive_recovery(trace, plan, needs_)),
        ends_(forward_ends(trace, needs_)),
        held_(held_ends(trace, needs_)),
        writer_(trace, plan.released.synchronizes_host),
        values_(trace, plan, needs_, recovery_.uses, writer_),
        gradients_(trace, plan, writer_),
        optimizer_(trace, needs_, writer_, values_, gradients_),
        use_codes_(needs_, plan) {
    CHECK(recovery_.defects.empty());
    const std::size_t ops = trace.ops.size(), tensors = trace.tensors.size();
    writer_.reserve(2 * tensors + ops, 6 * tensors, 4 * trace.operands.size());
  }

  Schedule run() && {
    count_streams();
    place_persistent();
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) forward(i);
    backward();
    optimizer_.run();
    return writer_.finish();
  }

 private:
  void count_streams() {
    if (!plan_.overlap || plan_.regions.empty()) return;
    first_stream_ = plan_.released.two_new_streams ? 1 : 0;
    writer_.set_streams(first_stream_ + 2);
  }

  void place_persistent() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (needs_.producer[t] == no_op && trace_[id].storage == id) values_.place(id);
    }
    optimizer_.place_state();
  }

  // --- forward -----------------------------------------------------------------------------------

  void forward(std::size_t i) {
    if (!is_view(trace_.ops[i].kind)) run_op(Task::Forward, i);
    if (plan_.released.codes_per_use) quantize_operands(i);
    for (const TensorId storage : ends_(i)) values_.end_forward(storage, is_made_again(storage));
  }

  void run_op(Task task, std::size_t i) {
    const Op& op = trace_.ops[i];
    for (const TensorId input : trace_.inputs(op)) values_.ensure_present(trace_[input].storage);
    for (const TensorId output : trace_.outputs(op))  // a kept one is written the same again
      if (trace_[output].storage == output && !values_.is_present(output)) values_.allocate(output);
    writer_.begin_run();
    for (const TensorId input : trace_.inputs(op)) writer_.read(values_.of(trace_[input].storage));
    for (const TensorId output : trace_.outputs(op))
      writer_.write(values_.of(trace_[output].storage));
    writer_.run(task, static_cast<OpId>(i));
  }

  // What only recovery reads, and recovery itself makes, need not stay.
  bool is_made_again(TensorId storage) const {
    const std::size_t s = index(storage);
    return needs_.uses[s] == 0 && recovery_.reruns[index(needs_.producer[s])] &&
           !recovery_.reads_kept[s];
  }

  void quantize_operands(std::size_t i) {
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, trace_.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
      if (plan_.actions[index(storage)] == Action::Quantize) {
        use_codes_[use] = values_.quantize(storage);
        values_.count_read(storage);
      }
      ++use;
    });
  }

  // --- gradients of one op -----------------------------------------------------------------------

  struct Contribution {
    TensorId tensor;
    BufferId buffer;
  };

  void gradients_of(std::size_t i) {
    writer_.arrive(i);
    if (needs_.gradients[i] != 0) {
      bring_saved(i);
      const BufferId incoming = allocate_input_gradients(i);
      run_backward(i, incoming);
      release_after_backward(i);
      for (const Contribution& c : contributions_) gradients_.contribute(c.tensor, c.buffer);
    }
    writer_.leave(i);
  }

  void gradients_of(const Region& region) {
    for (std::size_t op = index(region.end); op-- > index(region.begin);) gradients_of(op);
  }

  // What the backward decodes while it loads. Mesa's released code writes the values out first.
  Operands decoded(std::size_t i) const {
    if (plan_.released.copies_by_group || plan_.released.codes_per_use) return 0;
    return needs_.saved[i] & decoded_operands(trace_.ops[i].kind);
  }

  void bring_saved(std::size_t i) {
    const Op& op = trace_.ops[i];
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, op, needs_.saved[i] & ~decoded(i), [&](TensorId storage, TensorId) {
      const BufferId* codes = use_codes_.find(use++);
      if (codes && !values_.is_present(storage)) values_.dequantize(*codes, storage);
      values_.ensure_present(storage);
    });
    for_each_operand(trace_, op, decoded(i), [&](TensorId storage, TensorId) {
      if (values_.of_value_or_codes(storage) == no_buffer) values_.ensure_present(storage);
    });
  }

  // Gradients that alias the incoming one share it; the others get memory.
  BufferId allocate_input_gradients(std::size_t i) {
    const Op& op = trace_.ops[i];
    const BufferId incoming = gradients_.of(trace_.outputs(op)[0]);
    contributions_.clear();
    for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto k = static_cast<std::size_t>(__builtin_ctz(bits));
      const TensorId input = trace_.inputs(op)[k];
      if (shares_gradient(op, k, input)) {
        gradients_.share(incoming);
        contributions_.push_back({input, incoming});
      } else {
        contributions_.push_back({input, gradients_.allocate(input)});
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
    writer_.begin_run();
    for (const TensorId output : trace_.outputs(op))
      if (gradients_.of(output) != no_buffer) writer_.read(gradients_.of(output));
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      writer_.read(values_.of_value_or_codes(storage));
    });
    for (const Contribution& c : contributions_)
      if (c.buffer != incoming) writer_.write(c.buffer);
    if (batched != no_buffer) writer_.write(batched);
    if (writer_.writes_something()) writer_.run(Task::Backward, static_cast<OpId>(i));
    if (batched != no_buffer) writer_.free(batched);
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
    return writer_.allocate({x.shape[0] * size(weight).count}, no_tensor, Role::Temporary,
                            Category::Temporary);
  }

  void release_after_backward(std::size_t i) {
    const Op& op = trace_.ops[i];
    for (const TensorId output : trace_.outputs(op)) gradients_.drop(output);
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      if (BufferId* codes = use_codes_.find(use++)) {
        values_.drop(storage);
        writer_.free(std::exchange(*codes, no_buffer));
      } else if (values_.count_read(storage)) {
        values_.forget(storage);
      }
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
        if (values_.reads_to_come(storage) == 0) values_.forget(storage);
    }
  }

  void rerun(std::size_t i, std::size_t end) {
    const Op& op = trace_.ops[i];
    run_op(Task::Recompute, i);
    for (const TensorId input : trace_.inputs(op)) read_to_recover(trace_[input].storage, i, end);
    for (const TensorId output : trace_.outputs(op))
      if (values_.reads_to_come(output) == 0 && trace_[output].storage == output)
        values_.drop(output);
  }

  // While ops run again, their local variables hold values as before.
  void read_to_recover(TensorId storage, std::size_t at, std::size_t end) {
    if (!values_.count_read(storage)) return;
    const OpId held = trace_[storage].held_until;
    const bool is_named = held != no_op && index(held) > at && index(held) < end;
    if (!is_named) values_.forget(storage);
  }

  void invert(std::size_t i, std::size_t end) {
    const Op& op = trace_.ops[i];
    const TensorId shortcut = trace_[trace_.inputs(op)[0]].storage;
    const TensorId branch = trace_[trace_.inputs(op)[1]].storage;
    const TensorId sum = trace_[trace_.outputs(op)[0]].storage;
    values_.ensure_present(sum);
    values_.ensure_present(branch);
    if (!values_.is_present(shortcut) && values_.reads_to_come(shortcut) > 0) {
      values_.allocate(shortcut);
      writer_.begin_run();
      writer_.read(values_.of(sum));
      writer_.read(values_.of(branch));
      writer_.write(values_.of(shortcut));
      writer_.run(Task::Reconstruct, static_cast<OpId>(i));
    }
    read_to_recover(sum, i, end);
    read_to_recover(branch, i, end);
  }

  // --- the order of the backward -----------------------------------------------------------------

  void backward() {
    writer_.begin_backward();
    const auto is_zero = [](std::uint32_t gradients) { return gradients == 0; };
    if (!std::ranges::all_of(needs_.gradients, is_zero))
      gradients_.seed(needs_.producer[index(trace_[trace_.loss].storage)]);
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
    writer_.stream = StreamId::Compute;
    writer_.order().join(writer_.stream);
    writer_.arrive(trace_.ops.size());
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
    writer_.stream = stream_of(turn_);
    writer_.order().follow(writer_.stream, gradients_done_);
    gradients_of(current);
    gradients_done_ = writer_.order().mark(writer_.stream);
    if (region == 0 || !is_chained(region - 1)) {
      writer_.stream = StreamId::Compute;
      return;
    }
    writer_.stream = stream_of(++turn_);
    writer_.order().follow(writer_.stream, recovered_);
    recover(plan_.regions[region - 1]);
    recovered_ = writer_.order().mark(writer_.stream);
    writer_.stream = stream_of(turn_ - 1);  // ops between two regions stay with the gradients
  }

  // Both streams start after all that was issued before.
  void start_chain(const Region& region) {
    turn_ = 0;
    gradients_done_ = writer_.order().mark(StreamId::Compute);
    for (const std::size_t turn : {0u, 1u})
      writer_.order().follow(stream_of(turn), gradients_done_);
    writer_.stream = stream_of(0);
    recover(region);
    recovered_ = writer_.order().mark(writer_.stream);
  }

  // Was this region's recovery issued beside the gradients of the one after it?
  bool is_chained(std::size_t region) const {
    return region + 1 < plan_.regions.size() &&
           plan_.regions[region].chain == plan_.regions[region + 1].chain;
  }

  StreamId stream_of(std::size_t turn) const {
    return static_cast<StreamId>(first_stream_ + turn % 2);
  }

  const Trace& trace_;
  const Plan& plan_;
  const Needs needs_;
  const Recovery recovery_;
  const TensorsByOp ends_, held_;

  ScheduleWriter writer_;
  Values values_;
  Gradients gradients_;
  OptimizerStep optimizer_;
  CodesPerUse use_codes_;

  std::size_t first_stream_ = 0;  ///< of the two that regions alternate between
  std::size_t turn_ = 0;
  StreamOrder::Point recovered_, gradients_done_;  ///< the last region's
  std::vector<Contribution> contributions_;        ///< of the op at hand
};

}  // namespace

Schedule lower(const Trace& trace, const Plan& plan) { return Lowering(trace, plan).run(); }

}  // namespace tidemark
