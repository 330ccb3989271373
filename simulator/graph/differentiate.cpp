// Turns a plan into nodes. Example: x1 is Recompute, x2 is Keep.
//   forward    x0 ─f1─► x1 ─f2─► x2     nothing reads this x1 after f2
//   backward   b2 needs x1: f1 runs again and makes version 1 of it, then b2
// Each storage has a count of reads to come; whoever brings the count to zero releases it.
// Tested by differentiate_test.cpp, lower_test.cpp and any_plan_property_test.cpp.
#include "simulator/graph/differentiate.h"

#include <algorithm>
#include <utility>

#include "simulator/graph/codes_per_use.h"
#include "simulator/graph/last_uses.h"
#include "simulator/graph/optimizer_nodes.h"
#include "simulator/graph/present_gradients.h"
#include "simulator/graph/present_values.h"
#include "simulator/graph/transfers.h"

namespace tidemark {
namespace {

class Differentiation {
 public:
  Differentiation(const Trace& trace, const Plan& plan, const Derived& derived)
      : trace_(trace),
        plan_(plan),
        needs_(derived.needs),
        recovery_(derived.recovery),
        ends_(last_forward_uses(trace, needs_)),
        held_(last_held_uses(trace, needs_)),
        graph_(trace.tensors.size(), trace.ops.size(), trace.operands.size()),
        names_(trace.ops.size(), graph_),
        values_(trace, plan, needs_, graph_, names_),
        gradients_(trace, plan, graph_, names_),
        transfers_(trace, plan, graph_, values_),
        optimizer_(trace, needs_, graph_, values_, gradients_),
        use_codes_(needs_, plan) {
    CHECK(recovery_.defects.empty());
    graph_.use(plan.encodings);
  }

  JointGraph run() && {
    if (overlaps()) graph_.use(Lane::EvenRegions), graph_.use(Lane::OddRegions);
    place_persistent();
    for (std::int64_t batch = 0; batch < trace_.step.accumulate.count; ++batch) {
      values_.expect(recovery_.uses);
      for (std::size_t i = 0; i < trace_.ops.size(); ++i) forward(i);
      backward();
      join();
    }
    optimizer_.append();
    return std::move(graph_).finish();
  }

 private:
  bool overlaps() const { return plan_.overlap && !plan_.regions.empty(); }

  void place_persistent() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (needs_.producer[t] == no_op && trace_[id].storage == id) values_.place(id);
    }
    optimizer_.place_state();
    place_ranges();
  }

  // A quantizer's ranges are there before the first step and after the last.
  void place_ranges() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t)
      if (const auto storage = static_cast<TensorId>(t); is_coded_after_forward(storage))
        values_.place_ranges(storage);
    if (!plan_.quirks.codes_per_use) return;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      std::uint32_t use = use_codes_.first(i);
      for_each_operand(trace_, trace_.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
        if (plan_.decisions[index(storage)].action == Action::Quantize)
          use_codes_[use].ranges = values_.add_ranges(storage);
        ++use;
      });
    }
  }

  // Does the storage's value become codes that are nobody's own when its forward ends?
  bool is_coded_after_forward(TensorId storage) const {
    const std::size_t s = index(storage);
    if (plan_.decisions[s].action != Action::Quantize || trace_[storage].storage != storage)
      return false;
    const std::uint32_t own_codes = plan_.quirks.codes_per_use ? needs_.uses[s] : 0;
    return recovery_.uses[s] > own_codes && !is_made_again(needs_, recovery_, storage);
  }

  // --- forward -----------------------------------------------------------------------------------

  void forward(std::size_t i) {
    transfers_.before_forward(static_cast<OpId>(i));
    if (!is_view(trace_.ops[i].kind)) append_op(Task::Forward, i, Lane::Compute);
    if (plan_.quirks.codes_per_use) quantize_operands(i);
    for (const TensorId storage : ends_(i))
      values_.end_forward(storage, is_made_again(needs_, recovery_, storage));
  }

  void append_op(Task task, std::size_t i, Lane lane) {
    const Op& op = trace_.ops[i];
    for (const TensorId input : trace_.inputs(op))
      values_.ensure_present(trace_[input].storage, lane);
    operation_.clear();
    for (const TensorId input : trace_.inputs(op))
      operation_.read(values_.of(trace_[input].storage));
    const auto outputs = trace_.outputs(op);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const TensorId storage = trace_[outputs[k]].storage;
      const auto is_same = [&](TensorId other) { return trace_[other].storage == storage; };
      if (std::ranges::none_of(outputs.first(k), is_same))
        operation_.write(values_.write(storage));  // a kept one is written the same again
    }
    if (task == Task::Forward && row_of(op.kind).notes_min_max) note_extremes(op);
    if (const OpaqueRow* row = opaque_row(trace_, op)) add_workspace(op, row->forward.workspace);
    graph_.append(task, lane, static_cast<OpId>(i), operation_);
  }

  // Of what is quantized next. Mesa's released code makes a pass of its own for them, and what is
  // written over needs one, too.
  void note_extremes(const Op& op) {
    if (plan_.quirks.codes_per_use) return;
    for (const TensorId output : trace_.outputs(op))
      if (needs_.overwritten_by[index(output)] == no_op && is_coded_after_forward(output))
        values_.note_extremes(output, operation_);
  }

  // Memory that is there only while the node runs, named after what the op makes.
  void add_workspace(const Op& op, Bytes size) {
    if (size > Bytes{})
      operation_.write(graph_.add({.size = size,
                                   .tensor = trace_.outputs(op)[0],
                                   .role = Role::Temporary,
                                   .category = Category::Workspace}));
  }

  void quantize_operands(std::size_t i) {
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, trace_.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
      if (plan_.decisions[index(storage)].action == Action::Quantize) {
        values_.quantize(storage, use_codes_[use]);
        values_.count_read(storage);
      }
      ++use;
    });
  }

  // --- gradients of one op -----------------------------------------------------------------------

  struct Contribution {
    std::uint8_t input;
    TensorId tensor;
    InstanceId gradient;
  };

  void gradients_of(std::size_t i, Lane lane) {
    const auto op = static_cast<OpId>(i);
    position_ = op;
    transfers_.before_gradients(op);
    if (needs_.gradients[i] != 0) {
      bring_saved(i, lane);
      const InstanceId incoming = gradients_.of(trace_.outputs(trace_.ops[i])[0]);
      add_input_gradients(i, incoming);
      append_backward(i, incoming, lane);
      release_after_backward(i);
      for (const Contribution& c : contributions_)
        gradients_.contribute(c.tensor, c.gradient, {op, c.input, lane});
      optimizer_.after_backward(op, lane);
    }
    names_.end(op);
  }

  void gradients_of(const Region& region, Lane lane) {
    for (std::size_t op = index(region.end); op-- > index(region.begin);) gradients_of(op, lane);
  }

  // What the backward decodes while it loads. Mesa's released code writes the values out first.
  Operands decoded(std::size_t i) const {
    if (plan_.quirks.copies_by_group || plan_.quirks.codes_per_use) return 0;
    return needs_.saved[i] & decoded_operands(trace_.ops[i].kind);
  }

  void bring_saved(std::size_t i, Lane lane) {
    const Op& op = trace_.ops[i];
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, op, needs_.saved[i] & ~decoded(i), [&](TensorId storage, TensorId) {
      const Coded* coded = use_codes_.find(use++);
      if (coded && !values_.is_present(storage)) values_.dequantize(*coded, storage, lane);
      values_.ensure_present(storage, lane);
    });
    for_each_operand(trace_, op, decoded(i), [&](TensorId storage, TensorId) {
      if (!values_.is_value_or_codes(storage)) values_.ensure_present(storage, lane);
    });
  }

  // Gradients that alias the incoming one share it; the others get memory.
  void add_input_gradients(std::size_t i, InstanceId incoming) {
    const Op& op = trace_.ops[i];
    contributions_.clear();
    for (std::uint32_t bits = needs_.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto k = static_cast<std::uint8_t>(__builtin_ctz(bits));
      const TensorId input = trace_.inputs(op)[k];
      if ((needs_.handed_on[i] >> k & 1) != 0) {
        gradients_.share(incoming);
        graph_.hand_on({incoming, static_cast<OpId>(i), k});
        contributions_.push_back({k, input, incoming});
      } else {
        contributions_.push_back({k, input, gradients_.add(input)});
      }
    }
  }

  void append_backward(std::size_t i, InstanceId incoming, Lane lane) {
    const Op& op = trace_.ops[i];
    operation_.clear();
    for (const TensorId output : trace_.outputs(op))
      if (gradients_.of(output) != no_instance) operation_.read(gradients_.of(output));
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      values_.read_value_or_codes(storage, operation_);
    });
    for (const Contribution& c : contributions_)
      if (c.gradient != incoming) operation_.write(c.gradient);
    add_batched_weight_gradient(i);
    if (operation_.writes().empty()) return;  // all are handed on
    if (const OpaqueRow* row = opaque_row(trace_, op)) add_workspace(op, row->backward.workspace);
    graph_.append(Task::Backward, lane, static_cast<OpId>(i), operation_);
  }

  // Mesa's published linear multiplies gᵀ·x per sample and sums afterwards.
  void add_batched_weight_gradient(std::size_t i) {
    const Op& op = trace_.ops[i];
    constexpr std::uint32_t of_weight = 2;
    if (!plan_.quirks.batched_weight_gradient || op.kind != OpKind::Linear ||
        (needs_.gradients[i] & of_weight) == 0)
      return;
    const Tensor& x = trace_[trace_.inputs(op)[0]];
    const Tensor& weight = trace_[trace_.inputs(op)[1]];
    if (x.shape.rank() < 3) return;
    operation_.write(graph_.add({.size = {x.shape[0] * size(weight).count},
                                 .role = Role::Temporary,
                                 .category = Category::Temporary}));
  }

  void release_after_backward(std::size_t i) {
    const Op& op = trace_.ops[i];
    for (const TensorId output : trace_.outputs(op)) gradients_.drop(output, position_);
    std::uint32_t use = use_codes_.first(i);
    for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId) {
      if (Coded* coded = use_codes_.find(use++)) {
        values_.drop(storage, position_);
        graph_.release(std::exchange(coded->codes, no_instance));
      } else if (values_.count_read(storage)) {
        values_.forget(storage, position_);
      }
    });
  }

  // --- recovery ----------------------------------------------------------------------------------

  void recover(const Region& region, Lane lane) {
    recover_ops(index(region.split), index(region.end), lane);
    recover_ops(index(region.begin), index(region.split), lane);
  }

  void recover_ops(std::size_t begin, std::size_t end, Lane lane) {
    for (std::size_t i = begin; i < end; ++i) {
      if (recovery_.reruns[i]) rerun(i, end, lane);
      if (recovery_.inverts[i]) invert(i, end, lane);
      for (const TensorId storage : held_(i))  // the function returns: its variables go
        if (values_.reads_to_come(storage) == 0) values_.forget(storage, position_);
    }
  }

  void rerun(std::size_t i, std::size_t end, Lane lane) {
    const Op& op = trace_.ops[i];
    append_op(Task::Recompute, i, lane);
    for (const TensorId input : trace_.inputs(op)) read_to_recover(trace_[input].storage, i, end);
    for (const TensorId output : trace_.outputs(op))
      if (values_.reads_to_come(output) == 0 && trace_[output].storage == output)
        values_.drop(output, position_);
  }

  // While ops run again, their local variables hold values as before.
  void read_to_recover(TensorId storage, std::size_t at, std::size_t end) {
    if (!values_.count_read(storage)) return;
    const OpId held = trace_[storage].held_until;
    const bool is_named = held != no_op && index(held) > at && index(held) < end;
    if (!is_named) values_.forget(storage, position_);
  }

  void invert(std::size_t i, std::size_t end, Lane lane) {
    const Op& op = trace_.ops[i];
    const TensorId shortcut = trace_[trace_.inputs(op)[0]].storage;
    const TensorId branch = trace_[trace_.inputs(op)[1]].storage;
    const TensorId sum = trace_[trace_.outputs(op)[0]].storage;
    values_.ensure_present(sum, lane);
    values_.ensure_present(branch, lane);
    if (!values_.is_present(shortcut) && values_.reads_to_come(shortcut) > 0) {
      operation_.clear();
      operation_.read(values_.of(sum));
      operation_.read(values_.of(branch));
      operation_.write(values_.write(shortcut));
      graph_.append(Task::Reconstruct, lane, static_cast<OpId>(i), operation_);
    }
    read_to_recover(sum, i, end);
    read_to_recover(branch, i, end);
  }

  // --- the order of the backward -----------------------------------------------------------------

  void backward() {
    position_ = static_cast<OpId>(trace_.ops.size());
    transfers_.before_backward();
    const auto is_zero = [](std::uint32_t gradients) { return gradients == 0; };
    if (!std::ranges::all_of(needs_.gradients, is_zero))
      gradients_.seed(needs_.producer[index(trace_[trace_.loss].storage)]);
    Lane lane = Lane::Compute;  // of ops outside of regions
    std::size_t region = plan_.regions.size();
    for (std::size_t op = trace_.ops.size(); op > 0;) {
      if (region > 0 && index(plan_.regions[region - 1].end) == op) {
        lane = backward_region(--region);
        op = index(plan_.regions[region].begin);
      } else {
        gradients_of(--op, lane);
      }
    }
  }

  // On one lane: recover, then gradients. With two, each region's recovery was appended on this
  // region's lane while its successor's gradients ran on the other. Returns the lane of the ops
  // before the region: that of its gradients, until the chain ends.
  Lane backward_region(std::size_t region) {
    const Region& current = plan_.regions[region];
    if (!plan_.overlap) {
      recover(current, Lane::Compute);
      gradients_of(current, Lane::Compute);
      return Lane::Compute;
    }
    if (!is_chained(region)) start_chain(current);
    const Lane lane = lane_of(turn_);
    graph_.order(gradients_done_, lane);
    gradients_of(current, lane);
    gradients_done_ = graph_.last_node(lane);
    if (region == 0 || !is_chained(region - 1)) return Lane::Compute;
    const Lane beside = lane_of(++turn_);
    graph_.order(recovered_, beside);
    recover(plan_.regions[region - 1], beside);
    recovered_ = graph_.last_node(beside);
    return lane;
  }

  // Both lanes start after all that was appended before.
  void start_chain(const Region& region) {
    turn_ = 0;
    gradients_done_ = graph_.last_node(Lane::Compute);
    for (const Lane lane : {Lane::EvenRegions, Lane::OddRegions})
      graph_.order(gradients_done_, lane);
    recover(region, lane_of(0));
    recovered_ = graph_.last_node(lane_of(0));
  }

  // Was this region's recovery appended beside the gradients of the one after it?
  bool is_chained(std::size_t region) const {
    return region + 1 < plan_.regions.size() &&
           plan_.regions[region].chain == plan_.regions[region + 1].chain;
  }

  static Lane lane_of(std::size_t turn) {
    return turn % 2 == 0 ? Lane::EvenRegions : Lane::OddRegions;
  }

  // What comes next follows all lanes.
  void join() {
    for (const Lane lane : graph_.graph().lanes)
      if (lane != Lane::Compute) graph_.order(graph_.last_node(lane), Lane::Compute);
  }

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  const Recovery& recovery_;
  const TensorsByOp ends_, held_;

  GraphBuilder graph_;
  NamedInstances names_;
  PresentValues values_;
  PresentGradients gradients_;
  Transfers transfers_;
  OptimizerNodes optimizer_;
  CodesPerUse use_codes_;

  OpId position_ = no_op;  ///< the op whose gradients come next or are under way
  std::size_t turn_ = 0;
  NodeId recovered_ = no_node, gradients_done_ = no_node;  ///< the last nodes of the last region's
  std::vector<Contribution> contributions_;                ///< of the op at hand
  Operation operation_;                                    ///< the node at hand
};

}  // namespace

JointGraph differentiate(const Trace& trace, const Plan& plan) {
  return differentiate(trace, plan, derive(trace, plan));
}

JointGraph differentiate(const Trace& trace, const Plan& plan, const Derived& derived) {
  return Differentiation(trace, plan, derived).run();
}

}  // namespace tidemark
