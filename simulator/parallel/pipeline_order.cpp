// The first micro-batch makes gradients, the second adds to them, and so do all that follow: their
// nodes are copies of the second's. Example, two stages and three micro-batches, the first stage:
//   written   F1 B1 F2 B2 update
//   ordered   F1 F2 B1 F3 B2 B3 update
// Passes of stages with chunks are cut where another chunk begins.
#include "simulator/parallel/pipeline_order.h"

#include <algorithm>

#include "base/error.h"
#include "simulator/graph/graph_builder.h"
#include "simulator/parallel/pipeline_actions.h"
#include "simulator/parallel/split_backward.h"
#include "simulator/parallel/stage_trace.h"
#include "simulator/parallel/wrapped_groups.h"

namespace tidemark {
namespace {

class OrderedBatches {
 public:
  /// `weights`: see SplitGraph; none of a graph whose backward passes are whole.
  OrderedBatches(const Trace& trace, const JointGraph& old, const std::vector<NodeId>& weights)
      : old_(old),
        passes_(passes_of(trace, old, {WrappedGroup()})),
        weights_(weights),
        chunk_of_(chunk_of_ops(trace)),
        graph_(trace.tensors.size(), old.nodes.size(), old.operands.size()),
        batch_of_(old.instances.size(), nobody),
        leaves_(old.instances.size()),
        shared_(trace.tensors.size() * roles.size() + roles.size(), no_instance),
        shared_by_(shared_.size(), 0) {
    graph_.use(old.encodings);
    holds_ = old.holds;
    std::ranges::stable_sort(holds_, {}, &Hold::until);
    note_owners();
    note_parameters(trace);
  }

  JointGraph run(const std::vector<StageAction>& ordered, std::int64_t micro_batches) && {
    values_.resize(static_cast<std::size_t>(micro_batches));
    for (std::size_t i = 0; i < old_.instances.size(); ++i) {
      const Instance& instance = old_.instances[i];
      if (!instance.persistent || instance.over != no_instance) continue;
      shared_[place_of(InstanceId(i))] = graph_.add(instance);
    }
    std::vector<std::size_t> left(static_cast<std::size_t>(micro_batches));
    for (const StageAction& action : ordered) ++left[static_cast<std::size_t>(action.micro_batch)];
    for (const StageAction& action : ordered) {
      const auto batch = static_cast<std::size_t>(action.micro_batch);
      take_values(batch);
      ++action_;
      const Part part = part_of(nodes_of(action), action);
      copy(part.begin, part.end);
      if (--left[batch] == 0) unused_.push_back(std::move(*local_));
    }
    Values of_update(old_.instances.size(), no_instance);
    local_ = &of_update;
    copy(index(passes_.back().end), old_.nodes.size());
    return std::move(graph_).finish();
  }

 private:
  static constexpr std::size_t nobody = SIZE_MAX, update = SIZE_MAX - 1;
  /// By old instance: what stands for it, or no_instance.
  using Values = std::vector<InstanceId>;

  struct Part {
    std::size_t begin, end;
  };

  // Of all chunks.
  Part nodes_of(const StageAction& action) const {
    const std::size_t written =
        std::min<std::size_t>(static_cast<std::size_t>(action.micro_batch), passes_.size() / 2 - 1);
    const Pass& forward = passes_[2 * written];
    if (action.work == StageWork::Forward) return {index(forward.begin), index(forward.end)};
    const Pass& backward = passes_[2 * written + 1];
    if (weights_.empty()) return {index(backward.begin), index(backward.end)};
    const std::size_t second = index(weights_[written]);
    if (action.work == StageWork::Backward) return {index(backward.begin), second};
    return {second, index(backward.end)};
  }

  // Ops of later chunks stand behind in a forward pass, and before in a backward.
  Part part_of(const Part& all, const StageAction& action) const {
    const bool goes_back = action.work != StageWork::Forward;
    Part part{all.end, all.end};
    std::int64_t now = goes_back ? chunk_of_.back() : 0;
    for (std::size_t n = all.begin; n < all.end; ++n) {
      const OpId op = old_.nodes[n].op;
      if (op != no_op) now = chunk_of_[index(op)];
      if (now == action.chunk && part.begin == all.end) part.begin = n;
      if (goes_back ? now < action.chunk : now > action.chunk) {
        part.end = n;
        break;
      }
    }
    part.begin = std::min(part.begin, part.end);
    return part;
  }

  // Those of a micro-batch that is done are used again.
  void take_values(std::size_t micro_batch) {
    local_ = &values_[micro_batch];
    if (!local_->empty()) return;
    if (!unused_.empty()) {
      *local_ = std::move(unused_.back());
      unused_.pop_back();
    }
    local_->assign(old_.instances.size(), no_instance);
  }

  // In shared_: by tensor and role, those of no tensor behind all.
  std::size_t place_of(InstanceId old) const {
    const Instance& instance = old_[old];
    const std::size_t tensors = shared_.size() / roles.size() - 1;
    const std::size_t tensor = instance.tensor == no_tensor ? tensors : index(instance.tensor);
    return tensor * roles.size() + static_cast<std::size_t>(instance.role);
  }

  std::size_t batch_of_node(std::size_t n) const {
    for (std::size_t p = 0; p < passes_.size(); ++p)
      if (n < index(passes_[p].end)) return p / 2;
    return update;
  }

  // Whose an instance is, and which are read or held by others than the micro-batch that wrote
  // them: gradients that are being added up.
  void note_owners() {
    for (std::size_t n = 0; n < old_.nodes.size(); ++n) {
      const std::size_t batch = batch_of_node(n);
      for (const InstanceId read : old_.reads(old_.nodes[n])) note_use(read, batch);
      for (const InstanceId write : old_.writes(old_.nodes[n])) {
        batch_of_[index(write)] = batch;
        if (old_[write].over != no_instance) note_use(old_[write].over, batch);
      }
    }
    for (const Hold& hold : holds_) note_use(hold.instance, batch_of_node(index(hold.until)));
  }

  // Chunks of one stage that read the same table add to the same gradient, in the stage's order.
  void note_parameters(const Trace& trace) {
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const Instance& instance = old_.instances[i];
      if (instance.role == Role::Gradient && instance.category == Category::Gradient &&
          instance.tensor != no_tensor && trace[instance.tensor].trainable)
        leaves_[i] = true;
    }
  }

  void note_use(InstanceId id, std::size_t batch) {
    if (batch_of_[index(id)] != batch) leaves_[index(id)] = true;
  }

  InstanceId now(InstanceId old) const {
    const InstanceId common = leaves_[index(old)] ? shared_[place_of(old)] : no_instance;
    if (common != no_instance) return common;
    if (const InstanceId own = (*local_)[index(old)]; own != no_instance) return own;
    const InstanceId shared = shared_[place_of(old)];
    CHECK(shared != no_instance);
    return shared;
  }

  void copy(std::size_t begin, std::size_t end) {
    auto hold = std::ranges::lower_bound(holds_, NodeId(begin), {}, &Hold::until);
    for (std::size_t n = begin; n < end; ++n) {
      copy(old_.nodes[n]);
      for (; hold != holds_.end() && index(hold->until) == n; ++hold)
        graph_.release(now(hold->instance));
    }
  }

  void copy(const Node& node) {
    operation_.clear();
    for (const InstanceId read : old_.reads(node)) operation_.read_again(now(read));
    for (const InstanceId old : old_.writes(node)) {
      const Instance& instance = old_[old];
      const InstanceId made = write(node, instance);
      (*local_)[index(old)] = made;
      // What lies over something shared is the same, one version later.
      const bool is_over_shared = instance.over != no_instance && leaves_[index(instance.over)];
      if (leaves_[index(old)] || is_over_shared) {
        shared_[place_of(old)] = made;
        shared_by_[place_of(old)] = action_;
      }
      operation_.write(made);
    }
    graph_.append(node.task, node.lane, node.op, operation_);
    graph_.adds_to(node.input);
  }

  // The sum of what one pass contributes to a gradient may need memory; what is there from a pass
  // before is added to.
  InstanceId write(const Node& node, const Instance& instance) {
    if (instance.over != no_instance) return graph_.add_over(now(instance.over));
    if (node.task != Task::Accumulate) return graph_.add(instance);
    const InstanceId slot = old_.reads(node).back();
    const bool is_of_another_pass = leaves_[index(slot)] && shared_by_[place_of(slot)] != action_ &&
                                    old_[slot].size == instance.size;
    return is_of_another_pass ? graph_.add_over(now(slot)) : graph_.add(instance);
  }

  const JointGraph& old_;
  const std::vector<Pass> passes_;            ///< forward and backward of each written micro-batch
  const std::vector<NodeId> weights_;         ///< of each: where the second half of its backward is
  const std::vector<std::int64_t> chunk_of_;  ///< by op
  GraphBuilder graph_;
  Operation operation_;                  ///< of the node that is copied; kept for its memory
  std::vector<std::size_t> batch_of_;    ///< by old instance: the micro-batch that writes it
  std::vector<bool> leaves_;             ///< by old instance: read or held elsewhere
  std::vector<Hold> holds_;              ///< by `until`
  std::vector<InstanceId> shared_;       ///< between micro-batches: see place_of()
  std::vector<std::int64_t> shared_by_;  ///< the action that has written it
  std::int64_t action_ = 0;              ///< the one at hand, counted from 1
  std::vector<Values> values_;           ///< by micro-batch; empty unless it is in flight
  std::vector<Values> unused_;
  Values* local_ = nullptr;  ///< of the one at hand
};

}  // namespace

std::int64_t written_micro_batches(const StepOptions& step) {
  const std::int64_t all = step.accumulate.count;
  return step.mesh[Axis::Pipeline] == 1 ? all : std::min<std::int64_t>(all, 2);
}

std::string pipeline_defect(const StepOptions& step, const Plan& plan) {
  if (step.mesh[Axis::Pipeline] == 1) return {};
  if (step.accumulate.count == 1 && !splits_backward(step)) return {};
  if (splits_backward(step) && step.update_in_backward)
    return "a step that updates inside its backward has no gradients of weights to put off";
  if (plan.overlap)
    return "recovery beside gradients is not simulated for micro-batches in flight yet";
  for (const Decision& decision : plan.decisions) {
    if (decision.action == Action::Offload)
      return "copies of micro-batches in flight are not simulated yet";
    if (decision.action == Action::Quantize)
      return "micro-batches in flight would share the running ranges that codes are decoded by";
  }
  return {};
}

JointGraph order_micro_batches(const Trace& trace, JointGraph graph) {
  const StepOptions& step = trace.step;
  const std::int64_t stages = step.mesh[Axis::Pipeline], batches = step.accumulate.count;
  if (stages == 1 || (batches == 1 && !splits_backward(step))) return graph;
  CHECK(graph.lanes.size() == 1);  // pipeline_defect() of the plan
  SplitGraph split =
      splits_backward(step) ? split_backward(trace, graph) : SplitGraph{std::move(graph), {}};
  const std::vector<StageAction> ordered =
      actions_of(step.schedule.value_or(PipelineSchedule()), stages,
                 step.rank.value_or(RankClass()).stage, batches);
  return OrderedBatches(trace, split.graph, split.weights).run(ordered, batches);
}

}  // namespace tidemark
