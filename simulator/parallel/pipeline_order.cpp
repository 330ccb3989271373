// The first micro-batch makes gradients, the second adds to them, and so do all that follow: their
// nodes are copies of the second's. Example, two stages and three micro-batches, the first stage:
//   written   F1 B1 F2 B2 update
//   ordered   F1 F2 B1 F3 B2 B3 update
// Passes of interleaved stages are cut where another chunk begins, which receives something.
#include "simulator/parallel/pipeline_order.h"

#include <algorithm>

#include "base/error.h"
#include "simulator/graph/graph_builder.h"
#include "simulator/parallel/wrapped_groups.h"

namespace tidemark {
namespace {

// Each chunk but the step's first begins with what it receives.
std::vector<std::int64_t> chunks_of(const Trace& trace) {
  std::vector<std::int64_t> chunk_of(trace.ops.size());
  for (std::size_t i = 1; i < trace.ops.size(); ++i)
    chunk_of[i] = chunk_of[i - 1] + (trace.ops[i].kind == OpKind::Receive ? 1 : 0);
  return chunk_of;
}

class OrderedBatches {
 public:
  OrderedBatches(const Trace& trace, const JointGraph& old)
      : old_(old),
        passes_(passes_of(trace, old, {WrappedGroup()})),
        chunk_of_(chunks_of(trace)),
        graph_(trace.tensors.size(), old.nodes.size(), old.operands.size()),
        batch_of_(old.instances.size(), nobody),
        leaves_(old.instances.size()),
        shared_(trace.tensors.size() * roles.size() + roles.size(), no_instance) {
    graph_.use(old.encodings);
    holds_ = old.holds;
    std::ranges::stable_sort(holds_, {}, &Hold::until);
    note_owners();
  }

  JointGraph run(const std::vector<StageAction>& ordered, std::int64_t micro_batches) && {
    values_.resize(static_cast<std::size_t>(micro_batches));
    for (std::size_t i = 0; i < old_.instances.size(); ++i) {
      const Instance& instance = old_.instances[i];
      if (!instance.persistent || instance.over != no_instance) continue;
      shared_[place_of(InstanceId(i))] = graph_.add(instance);
    }
    for (const StageAction& action : ordered) {
      const std::size_t written = std::min<std::size_t>(
          static_cast<std::size_t>(action.micro_batch), passes_.size() / 2 - 1);
      const Pass& pass = passes_[2 * written + (action.is_backward ? 1 : 0)];
      take_values(static_cast<std::size_t>(action.micro_batch));
      const auto [begin, end] = part_of(pass, action.chunk);
      copy(begin, end);
      if (action.is_backward && action.chunk == 0) unused_.push_back(std::move(*local_));
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

  // Ops of later chunks stand behind in a forward pass, and before in a backward.
  Part part_of(const Pass& pass, std::int64_t chunk) const {
    Part part{index(pass.end), index(pass.end)};
    std::int64_t now = pass.is_backward ? chunk_of_.back() : 0;
    for (std::size_t n = index(pass.begin); n < index(pass.end); ++n) {
      const OpId op = old_.nodes[n].op;
      if (op != no_op) now = chunk_of_[index(op)];
      if (now == chunk && part.begin == index(pass.end)) part.begin = n;
      if (pass.is_backward ? now < chunk : now > chunk) {
        part.end = n;
        break;
      }
    }
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

  void note_use(InstanceId id, std::size_t batch) {
    if (batch_of_[index(id)] != batch) leaves_[index(id)] = true;
  }

  InstanceId now(InstanceId old) const {
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
    Operation operation;
    for (const InstanceId read : old_.reads(node)) operation.read_again(now(read));
    for (const InstanceId old : old_.writes(node)) {
      const Instance& instance = old_[old];
      const InstanceId made =
          instance.over == no_instance ? graph_.add(instance) : graph_.add_over(now(instance.over));
      (*local_)[index(old)] = made;
      // What lies over something shared is the same, one version later.
      const bool is_over_shared = instance.over != no_instance && leaves_[index(instance.over)];
      if (leaves_[index(old)] || is_over_shared) shared_[place_of(old)] = made;
      operation.write(made);
    }
    graph_.append(node.task, node.lane, node.op, operation);
    graph_.adds_to(node.input);
  }

  const JointGraph& old_;
  const std::vector<Pass> passes_;            ///< forward and backward of each written micro-batch
  const std::vector<std::int64_t> chunk_of_;  ///< by op
  GraphBuilder graph_;
  std::vector<std::size_t> batch_of_;  ///< by old instance: the micro-batch that writes it
  std::vector<bool> leaves_;           ///< by old instance: read or held elsewhere
  std::vector<Hold> holds_;            ///< by `until`
  std::vector<InstanceId> shared_;     ///< between micro-batches: see place_of()
  std::vector<Values> values_;         ///< by micro-batch; empty unless it is in flight
  std::vector<Values> unused_;
  Values* local_ = nullptr;  ///< of the one at hand
};

}  // namespace

namespace {

// Micro-batches by chunk, in groups of as many as there are stages: the order of forwards.
std::vector<StageAction> interleaved_forwards(const PipelineSchedule& schedule, std::int64_t stages,
                                              std::int64_t micro_batches) {
  std::vector<StageAction> list;
  for (std::int64_t first = 0; first < micro_batches; first += stages)
    for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
      for (std::int64_t i = first; i < std::min(first + stages, micro_batches); ++i)
        list.push_back({false, i, chunk});
  return list;
}

}  // namespace

std::int64_t forwards_ahead(const PipelineSchedule& schedule, std::int64_t stages,
                            std::int64_t stage) {
  switch (schedule.kind) {
    case PipelineSchedule::Kind::OneForwardOneBackward:
      return stages - stage - 1;
    case PipelineSchedule::Kind::GPipe:
      return INT64_MAX;
    case PipelineSchedule::Kind::Interleaved:
      return 2 * (stages - stage - 1) + (schedule.chunks - 1) * stages;
  }
  return 0;
}

std::vector<StageAction> actions_of(const PipelineSchedule& schedule, std::int64_t stages,
                                    std::int64_t stage, std::int64_t micro_batches) {
  const std::vector<StageAction> forwards = interleaved_forwards(schedule, stages, micro_batches);
  const std::size_t ahead = static_cast<std::size_t>(std::min(
      static_cast<std::int64_t>(forwards.size()), forwards_ahead(schedule, stages, stage)));
  std::vector<StageAction> list(forwards.begin(),
                                forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = ahead; i < forwards.size() + ahead; ++i) {
    if (i < forwards.size()) list.push_back(forwards[i]);
    StageAction back = forwards[i - ahead];
    back.is_backward = true;
    back.chunk = schedule.chunks - 1 - back.chunk;
    list.push_back(back);
  }
  return list;
}

std::int64_t written_micro_batches(const StepOptions& step) {
  const std::int64_t all = step.accumulate.count;
  return step.mesh[Axis::Pipeline] == 1 ? all : std::min<std::int64_t>(all, 2);
}

std::string pipeline_defect(const StepOptions& step, const Plan& plan) {
  if (step.mesh[Axis::Pipeline] == 1 || step.accumulate.count == 1) return {};
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
  if (step.mesh[Axis::Pipeline] == 1 || step.accumulate.count == 1) return graph;
  CHECK(graph.lanes.size() == 1);  // pipeline_defect() of the plan
  const auto schedule = step.schedule.value_or(PipelineSchedule());
  return OrderedBatches(trace, graph)
      .run(actions_of(schedule, step.mesh[Axis::Pipeline], step.rank.value_or(RankClass()).stage,
                      step.accumulate.count),
           step.accumulate.count);
}

}  // namespace tidemark
