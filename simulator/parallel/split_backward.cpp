// Example, two linears, one behind the other:
//   before   dy2 ─b2─► dx2, dw2    dx2 ─b1─► dx1, dw1
//   after    dy2 ─b2─► dx2         dx2 ─b1─► dx1        dy2, x2 ─w2─► dw2    dx2, x1 ─w1─► dw1
#include "simulator/parallel/split_backward.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "simulator/graph/graph_rewriter.h"
#include "simulator/graph/inner_tensors.h"
#include "simulator/needs.h"
#include "simulator/parallel/wrapped_groups.h"

namespace tidemark {
namespace {

std::vector<bool> made_of_parameters(const Trace& trace) {
  std::vector<bool> found(trace.tensors.size());
  for (std::size_t t = 0; t < found.size(); ++t)
    found[t] = trace.tensors[t].category == Category::Parameter;
  for (const Op& op : trace.ops) {
    const auto inputs = trace.inputs(op);
    const bool is_made = std::ranges::all_of(inputs, [&](TensorId x) { return found[index(x)]; });
    for (const TensorId output : trace.outputs(op)) found[index(output)] = is_made;
  }
  return found;
}

// The input whose rule has the kernel that writes this one's gradient.
std::size_t with_kernel(const Trace& trace, const Op& op, std::size_t input) {
  while (input > 0 && gradient_rule(trace, op, input).kernels == 0) --input;
  return input;
}

// Of the op's gradients those of weights, or none if a kernel writes some of both.
std::uint32_t of_weights(const Trace& trace, const Op& op, std::uint32_t gradients,
                         const std::vector<bool>& is_made) {
  const auto inputs = trace.inputs(op);
  std::uint32_t found = 0;
  for (std::uint32_t bits = gradients; bits != 0; bits &= bits - 1) {
    const auto k = static_cast<std::size_t>(std::countr_zero(bits));
    if (is_made[index(inputs[k])]) found |= std::uint32_t{1} << k;
    if (is_made[index(inputs[k])] != is_made[index(inputs[with_kernel(trace, op, k)])]) return 0;
  }
  return op.kind == OpKind::Opaque && found != gradients ? 0 : found;
}

class SplitPasses {
 public:
  SplitPasses(const Trace& trace, const JointGraph& old)
      : trace_(trace),
        old_(old),
        gradients_(derive_gradients(trace)),
        of_weights_(gradients_of_weights(trace)),
        rewriter_(old) {}

  SplitGraph run() && {
    std::size_t n = 0;
    SplitGraph split;
    for (const Pass& pass : passes_of(trace_, old_, {WrappedGroup()})) {
      for (; n < index(pass.end); ++n) pass.is_backward ? first_half(n) : copy();
      if (!pass.is_backward) continue;
      rewriter_.end_node();
      split.weights.push_back(NodeId(count_));
      for (const Later& later : later_) second_half(later);
      later_.clear();
      is_needed_.clear();
    }
    for (; n < old_.nodes.size(); ++n) copy();
    split.graph = std::move(rewriter_).finish();
    return split;
  }

 private:
  // A node of the old graph, or the half of it that makes gradients of weights.
  struct Later {
    std::size_t node;
    bool is_whole;
  };

  void copy() { count_ = index(rewriter_.copy_next()) + 1; }

  void append(Task task, const Node& node, const Operation& operation) {
    count_ = index(rewriter_.append(task, node.lane, node.op, operation)) + 1;
    rewriter_.adds_to(node.input);
  }

  std::uint32_t weights_in(const Node& node) const {
    return node.op == no_op ? 0 : of_weights_[index(node.op)];
  }

  bool is_written(InstanceId old) const { return rewriter_.now(old) != no_instance; }

  // Which halves there are of a node.
  struct Halves {
    bool first = true, second = false;
  };

  // A sum follows what it adds up: of a gradient that comes later, it does, too.
  Halves halves_of(const Node& node) const {
    const std::uint32_t weights = weights_in(node);
    const auto reads = old_.reads(node), writes = old_.writes(node);
    if (node.task == Task::Accumulate) {
      const bool is_later =
          (weights >> node.input & 1) != 0 ||
          !std::ranges::all_of(reads, [&](InstanceId read) { return is_written(read); });
      return {!is_later, is_later};
    }
    if (node.task != Task::Backward || weights == 0) return {};
    const auto is_of_weights = [&](InstanceId id) { return is_among(old_[id], node, weights); };
    const auto is_other = [&](InstanceId id) {
      return old_[id].role == Role::Gradient && !is_of_weights(id);
    };
    return {std::ranges::any_of(writes, is_other), std::ranges::any_of(writes, is_of_weights)};
  }

  // Is it the gradient of one of these inputs of the node's op?
  bool is_among(const Instance& written, const Node& node, std::uint32_t inputs) const {
    if (written.role != Role::Gradient) return false;
    for (std::uint32_t bits = inputs; bits != 0; bits &= bits - 1)
      if (trace_.inputs(trace_[node.op])[static_cast<std::size_t>(std::countr_zero(bits))] ==
          written.tensor)
        return true;
    return false;
  }

  void first_half(std::size_t n) {
    const Node& node = old_.nodes[n];
    const Halves halves = halves_of(node);
    if (halves.first) make_room(node);
    if (!halves.first) {
      rewriter_.skip_next();
    } else if (halves.second) {
      rewriter_.skip_next();
      append(Task::Backward, node,
             part_of(node, gradients_[index(node.op)] & ~weights_in(node), true));
    } else if (writes_over_what_is_needed(node)) {
      rewriter_.skip_next();
      append(*node.task, node, in_new_memory(node));
    } else {
      copy();
    }
    if (!halves.second) return;
    later_.push_back({n, !halves.first});
    for (const InstanceId read : old_.reads(node)) {
      if (!is_written(read)) continue;
      const std::size_t memory = index(memory_of(rewriter_.now(read)));
      if (memory >= is_needed_.size()) is_needed_.resize(memory + 1);
      is_needed_[memory] = true;
    }
  }

  void second_half(const Later& later) {
    const Node& node = old_.nodes[later.node];
    const Task task = node.task == Task::Backward ? Task::WeightGradient : *node.task;
    append(task, node, later.is_whole ? all_of(node) : part_of(node, weights_in(node), false));
  }

  Operation all_of(const Node& node) {
    Operation operation = rewriter_.reads_of(node);
    for (const InstanceId old : old_.writes(node)) operation.write(rewriter_.written(old));
    return operation;
  }

  // Both halves read the gradients of the op's outputs. Memory beside gradients is the weights',
  // but for tensors inside, of which each half has its own.
  Operation part_of(const Node& node, std::uint32_t gradients, bool is_first) {
    const Op& op = trace_[node.op];
    Operands needs = is_first ? op.also_keeps : 0;
    for (std::uint32_t bits = gradients; bits != 0; bits &= bits - 1)
      needs |= gradient_rule(trace_, op, static_cast<std::size_t>(std::countr_zero(bits))).needs;
    needs &= saved_operands(trace_, op, gradients);  // those that the op has
    Operation operation;
    for (const InstanceId read : old_.reads(node)) {
      bool is_needed = old_[read].role == Role::Gradient;
      for_each_operand(trace_, op, needs, [&](TensorId storage, TensorId) {
        is_needed = is_needed || old_[read].tensor == storage;
      });
      if (is_needed) operation.read_again(rewriter_.now(read));
    }
    const bool has_inner = has_inner_tensors(trace_, op);
    for (const InstanceId old : old_.writes(node)) {
      const bool is_gradient = old_[old].role == Role::Gradient;
      if (is_gradient ? is_among(old_[old], node, gradients) : !is_first && !has_inner)
        operation.write(rewriter_.written(old));
    }
    const BackwardCall call{.gradients = gradients, .keeps_dy = is_first};
    for (const Bytes inner : inner_tensors(trace_, op, call).sizes())
      operation.write(
          rewriter_.add({.size = inner, .role = Role::Temporary, .category = Category::Temporary}));
    return operation;
  }

  InstanceId memory_of(InstanceId made) const {
    while (rewriter_[made].over != no_instance) made = rewriter_[made].over;
    return made;
  }

  bool reads(const Later& later, InstanceId memory) const {
    const auto read = old_.reads(old_.nodes[later.node]);
    return std::ranges::any_of(read, [&](InstanceId old) {
      return is_written(old) && memory_of(rewriter_.now(old)) == memory;
    });
  }

  // Does it write over something that the second half reads?
  bool writes_over_what(const Node& node, const Later& later) const {
    return std::ranges::any_of(old_.writes(node), [&](InstanceId written) {
      const InstanceId over = old_[written].over;
      return over != no_instance && is_written(over) &&
             reads(later, memory_of(rewriter_.now(over)));
    });
  }

  bool writes_over_what_is_needed(const Node& node) const {
    return std::ranges::any_of(old_.writes(node), [&](InstanceId written) {
      const InstanceId over = old_[written].over;
      if (over == no_instance || !is_written(over)) return false;
      const std::size_t memory = index(memory_of(rewriter_.now(over)));
      return memory < is_needed_.size() && is_needed_[memory];
    });
  }

  // For what is not a sum: who needs what it writes over is not put off any longer.
  void make_room(const Node& node) {
    if (node.task == Task::Accumulate || !writes_over_what_is_needed(node)) return;
    rewriter_.end_node();
    std::vector<Later> left;
    for (const Later& later : later_) {
      if (writes_over_what(node, later))
        second_half(later);
      else
        left.push_back(later);
    }
    later_ = std::move(left);
  }

  Operation in_new_memory(const Node& sum) {
    Operation operation = rewriter_.reads_of(sum);
    for (const InstanceId old : old_.writes(sum)) {
      Instance instance = old_[old];
      instance.over = no_instance;
      const InstanceId made = rewriter_.add(instance);
      rewriter_.replace(old, made);
      operation.write(made);
    }
    return operation;
  }

  const Trace& trace_;
  const JointGraph& old_;
  const std::vector<std::uint32_t> gradients_, of_weights_;  ///< by op
  GraphRewriter rewriter_;
  std::vector<Later> later_;     ///< of the pass at hand, in order
  std::vector<bool> is_needed_;  ///< by memory of the new graph: do they read it?
  std::size_t count_ = 0;        ///< of nodes so far
};

}  // namespace

bool splits_backward(const StepOptions& step) {
  return step.mesh[Axis::Pipeline] > 1 && step.schedule && step.schedule->splits_backward();
}

std::vector<std::uint32_t> gradients_of_weights(const Trace& trace) {
  if (!splits_backward(trace.step)) return {};
  std::vector<std::uint32_t> found = derive_gradients(trace);
  const std::vector<bool> is_made = made_of_parameters(trace);
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = of_weights(trace, trace.ops[i], found[i], is_made);
  return found;
}

SplitGraph split_backward(const Trace& trace, const JointGraph& graph) {
  return SplitPasses(trace, graph).run();
}

}  // namespace tidemark
