// A forward of two groups, and the backward of the second, by lane:
//   gather   pack 1  gather 1     pack 2  gather 2         …  pack 1  gather 1
//   compute                    unpack 1  forward 1  unpack 2  …  backward 2  pack d2   …
//   reduce                                                                         reduce-scatter 2
// Memory follows who refers to what in the Python code:
// * forward: the output of an all-gather stays until that of the next group is there
// * backward: it is freed as soon as it is unpacked, and one group ahead is gathered then
// * the input of a reduce-scatter stays until the next one is packed
// FSDP1 gathers into the parameters themselves, views of one flat parameter per group, and frees
// them together; its host waits for the memory of the group before the last. Autograd makes one
// gradient of the views' gradients.
// Tested by tests/simulator/parallel/fsdp2_test.cpp and fsdp1_test.cpp.
#include <algorithm>

#include "simulator/graph/graph_rewriter.h"
#include "simulator/parallel/cut_parameters.h"
#include "simulator/parallel/kept_gradient.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/share.h"
#include "simulator/parallel/wrapped_groups.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

constexpr std::size_t root = 0;
constexpr std::size_t in_flight = 2;  // all-gathers of FSDP1: _FreeEventQueue

class FullSharding {
 public:
  FullSharding(const Trace& trace, const JointGraph& graph, const Sharding& sharing)
      : trace_(trace),
        graph_(cut_parameters(trace, graph)),
        reshards_(sharing.reshards),
        is_flat_(sharing.kind == Sharding::Kind::Fsdp1),
        is_cast_(trace.step.master_weights),
        groups_(wrapped_groups(trace)),
        passes_(passes_of(trace, graph_, groups_)),
        rewriter_(graph_),
        states_(groups_.size()),
        shard_(trace.tensors.size(), no_instance),
        value_(trace.tensors.size(), no_instance),
        gradients_(trace.tensors.size()),
        pending_(trace.tensors.size(), no_instance) {
    rewriter_.use(Lane::Gather);
    rewriter_.use(Lane::Reduce);
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) note(static_cast<InstanceId>(i));
  }

  JointGraph run() && {
    std::size_t n = 0;
    for (const Pass& pass : passes_) {
      for (; n < index(pass.end); ++n) {
        enter(pass, static_cast<NodeId>(n));
        copy(graph_.nodes[n]);
        rewriter_.end_node();
        leave(pass, static_cast<NodeId>(n + 1));
      }
      pass.is_backward ? end_backward() : end_forward();
    }
    for (; n < graph_.nodes.size(); ++n) rewriter_.copy_next();
    return std::move(rewriter_).finish();
  }

 private:
  struct State {
    InstanceId gathered = no_instance;  ///< an all-gather's output that is not unpacked yet
    bool is_whole = false;              ///< its parameters are there as a whole
  };

  bool is_parameter(TensorId tensor) const {
    return tensor != no_tensor && trace_[tensor].category == Category::Parameter;
  }

  void note(InstanceId id) {
    const Instance& instance = graph_[id];
    if (!is_parameter(instance.tensor)) return;
    const std::size_t t = index(instance.tensor);
    if (instance.role == Role::Shard && instance.over == no_instance) {
      value_[t] = id;
      shard_[t] = rewriter_.now(id);
    }
    if (instance.role == Role::Gradient || instance.role == Role::GradientShard)
      gradients_[t].push_back(id);
  }

  void enter(const Pass& pass, NodeId node) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (pass.enter[g] != node) continue;
      if (pass.is_backward && g == root && groups_.size() > 1) gather(groups_.size() - 1);
      if (!states_[g].is_whole) make_whole(g, pass.is_backward);
      if (pass.is_backward && g > root + 1) gather(g - 1);
    }
  }

  void leave(const Pass& pass, NodeId behind) {
    for (std::size_t g = groups_.size(); g-- > 0;) {
      if (pass.leave[g] != behind) continue;
      if (pass.is_backward || (reshards_ && g != root)) reshard(g);
      if (pass.is_backward) reduce(g);
    }
  }

  // To the sum in a shard goes what a whole micro-batch contributes, after it is reduced.
  void copy(const Node& node) {
    if (node.task == Task::Accumulate) {
      const InstanceId slot = rewriter_.now(graph_.reads(node).back());
      if (rewriter_[slot].role == Role::GradientShard) {
        pending_[index(graph_[graph_.writes(node)[0]].tensor)] = slot;
        return keep_gradient(trace_, graph_, node, rewriter_);
      }
    }
    computed_ = rewriter_.copy_next();
  }

  void gather(std::size_t g) {
    const State& state = states_[g];
    if (state.is_whole || state.gathered != no_instance || groups_[g].parameters.empty()) return;
    is_flat_ ? gather_flat(g) : gather_output(g);
  }

  // The host waits until of two groups before one is free (limit_all_gathers). More are
  // free where a segment is made again: its groups are freed one after the other.
  void gather_flat(std::size_t g) {
    if (freed_by_.size() >= in_flight) {
      rewriter_.order(freed_by_.front(), Lane::Gather);
      freed_by_.erase(freed_by_.begin());
    }
    Operation cast, all;
    Bytes narrow;
    for (const TensorId parameter : groups_[g].parameters) {
      cast.read(shard_[index(parameter)]);
      narrow.count += padded_numel(trace_, parameter) / ranks_that_share(trace_.step) *
                      size_of(trace_[parameter].dtype);
    }
    if (is_cast_) {
      cast.write(buffer(g, narrow));
      rewriter_.append(Task::Pack, Lane::Gather, groups_[g].first_op, cast);
    }
    for (const InstanceId input : is_cast_ ? cast.writes() : cast.reads()) all.read(input);
    write_whole(g, all);
    rewriter_.append(Task::AllGather, Lane::Gather, groups_[g].first_op, all);
    states_[g].gathered = all.writes().front();
  }

  void write_whole(std::size_t g, Operation& operation) {
    for (const TensorId parameter : groups_[g].parameters) {
      const InstanceId whole = rewriter_.add({.size = size(trace_[parameter]),
                                              .tensor = parameter,
                                              .role = Role::Value,
                                              .category = Category::Parameter});
      operation.write(whole);
      rewriter_.replace(value_[index(parameter)], whole);
    }
  }

  // The input is a part of the output, so that both are one memory.
  void gather_output(std::size_t g) {
    State& state = states_[g];
    Operation pack;
    Bytes size;
    for (const TensorId parameter : groups_[g].parameters) {
      pack.read(shard_[index(parameter)]);
      size.count += padded_numel(trace_, parameter) * size_of(trace_[parameter].dtype);
    }
    const InstanceId output = buffer(g, size);
    pack.write(output);
    rewriter_.append(Task::Pack, Lane::Gather, groups_[g].first_op, pack);
    state.gathered = rewriter_.add_over(output);
    Operation all;
    all.read(output);
    all.write(state.gathered);
    rewriter_.append(Task::AllGather, Lane::Gather, groups_[g].first_op, all);
  }

  InstanceId buffer(std::size_t g, Bytes size) {
    return rewriter_.add({.size = size,
                          .tensor = groups_[g].parameters.front(),
                          .role = Role::Temporary,
                          .category = Category::Communication});
  }

  void make_whole(std::size_t g, bool is_backward) {
    gather(g);
    State& state = states_[g];
    state.is_whole = true;
    if (is_flat_) state.gathered = no_instance;
    if (state.gathered == no_instance) return;
    if (!is_backward) free_kept_output();
    Operation unpack;
    unpack.read(state.gathered);
    write_whole(g, unpack);
    const NodeId unpacked =
        rewriter_.append(Task::Pack, Lane::Compute, groups_[g].first_op, unpack);
    if (is_backward) {
      rewriter_.order(unpacked, Lane::Gather);
    } else {
      kept_output_ = state.gathered, kept_until_ = unpacked;
    }
    state.gathered = no_instance;
  }

  // So that it can be unpacked while the next one is gathered.
  void free_kept_output() {
    if (kept_output_ == no_instance) return;
    rewriter_.release(kept_output_);
    rewriter_.order(kept_until_, Lane::Gather);
    kept_output_ = no_instance;
  }

  // Parameters of a group are there until all of it is, whoever reads them last: the root's
  // embedding for all of the backward.
  void reshard(std::size_t g) {
    states_[g].is_whole = false;
    for (const TensorId parameter : groups_[g].parameters) {
      rewriter_.release(rewriter_.now(value_[index(parameter)]));
      rewriter_.replace(value_[index(parameter)], shard_[index(parameter)]);
    }
    if (is_flat_) freed_by_.push_back(computed_);
  }

  // What the passes since the last reduction have made.
  std::vector<TensorId> with_gradients(std::size_t g) const {
    std::vector<TensorId> found;
    for (const TensorId parameter : groups_[g].parameters)
      if (whole_gradient(parameter) != no_instance) found.push_back(parameter);
    return found;
  }

  InstanceId whole_gradient(TensorId parameter) const {
    const std::vector<InstanceId>& all = gradients_[index(parameter)];
    for (std::size_t i = all.size(); i-- > 0;) {
      const InstanceId now = rewriter_.now(all[i]);
      if (now != no_instance && rewriter_[now].role == Role::Gradient) return now;
    }
    return no_instance;
  }

  void reduce(std::size_t g) {
    const std::vector<TensorId> parameters = with_gradients(g);
    if (parameters.empty()) return;
    if (is_flat_) return reduce_flat(g, parameters);
    await_reduction();
    Operation pack;
    Bytes size;
    for (const TensorId parameter : parameters) {
      pack.read(whole_gradient(parameter));
      size.count +=
          padded_numel(trace_, parameter) * size_of(local_parameter(trace_, parameter).dtype);
    }
    reduced_input_ = buffer(g, size);
    pack.write(reduced_input_);
    rewriter_.append(Task::Pack, Lane::Compute, groups_[g].first_op, pack);
    scatter(g, parameters);
  }

  // Another stream widens and reduces the flat gradient, whose memory is its own meanwhile.
  void reduce_flat(std::size_t g, const std::vector<TensorId>& parameters) {
    Operation join, widen;
    Bytes narrow, wide;
    for (const TensorId parameter : parameters) {
      join.read(whole_gradient(parameter));
      const std::int64_t elements = padded_numel(trace_, parameter);
      narrow.count += elements * size_of(trace_[parameter].dtype);
      wide.count += elements * size_of(local_parameter(trace_, parameter).dtype);
    }
    reduced_input_ = buffer(g, narrow);
    join.write(reduced_input_);
    rewriter_.append(Task::Pack, Lane::Compute, groups_[g].first_op, join);
    if (is_cast_) {
      widen.read(reduced_input_);
      widen.write(reduced_input_ = buffer(g, wide));
      rewriter_.append(Task::Pack, Lane::Reduce, groups_[g].first_op, widen);
    }
    scatter(g, parameters);
    reduced_input_ = no_instance;
  }

  void scatter(std::size_t g, const std::vector<TensorId>& parameters) {
    Operation scatter;
    scatter.read(reduced_input_);
    std::vector<InstanceId> shards;
    for (const TensorId parameter : parameters) {
      shards.push_back(rewriter_.add({.size = size(local_parameter(trace_, parameter)),
                                      .tensor = parameter,
                                      .role = Role::GradientShard,
                                      .category = Category::Gradient}));
      scatter.write(shards.back());
    }
    reduced_by_ = rewriter_.append(Task::ReduceScatter, Lane::Reduce, groups_[g].first_op, scatter);
    if (ranks_that_share(trace_.step) < replicas_of(trace_.step.mesh)) sum_copies(g, shards);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      keep(parameters[i], shards[i], groups_[g].first_op);
  }

  // Hybrid sharding: other groups of ranks have the same shards.
  void sum_copies(std::size_t g, std::vector<InstanceId>& shards) {
    Operation all;
    for (InstanceId& shard : shards) {
      all.read(shard);
      all.write(shard = rewriter_.add_over(shard));
    }
    rewriter_.append(Task::AllReduce, Lane::Reduce, groups_[g].first_op, all);
  }

  // The first micro-batch's is the gradient, and those of others are added to it.
  void keep(TensorId parameter, InstanceId shard, OpId op) {
    InstanceId& sum = pending_[index(parameter)];
    if (sum != no_instance) {
      Operation add;
      add.read(shard);
      add.read(sum);
      shard = rewriter_.add_over(sum);
      add.write(shard);
      reduced_by_ = rewriter_.append(Task::Accumulate, Lane::Reduce, op, add);
      sum = no_instance;
    }
    for (const InstanceId version : gradients_[index(parameter)]) rewriter_.replace(version, shard);
  }

  void await_reduction() {
    if (reduced_input_ == no_instance) return;
    rewriter_.order(reduced_by_, Lane::Compute);
    rewriter_.release(reduced_input_);
    reduced_input_ = no_instance;
  }

  void end_forward() { free_kept_output(); }
  void end_backward() {
    await_reduction();
    if (is_flat_) rewriter_.order(reduced_by_, Lane::Compute);
  }

  const Trace& trace_;
  const JointGraph graph_;
  const bool reshards_;
  const bool is_flat_;  ///< FSDP1
  const bool is_cast_;  ///< shards are wider than what is computed with
  const std::vector<WrappedGroup> groups_;
  const std::vector<Pass> passes_;
  GraphRewriter rewriter_;
  std::vector<State> states_;                       ///< by group
  std::vector<InstanceId> shard_;                   ///< by tensor, of the new graph
  std::vector<InstanceId> value_;                   ///< by tensor, of the old graph
  std::vector<std::vector<InstanceId>> gradients_;  ///< by tensor, of the old graph
  std::vector<InstanceId> pending_;  ///< by tensor: the sum that a gradient is to be added to
  InstanceId kept_output_ = no_instance;
  NodeId kept_until_ = no_node;
  NodeId computed_ = no_node;
  std::vector<NodeId> freed_by_;  ///< FSDP1: what groups were freed behind
  InstanceId reduced_input_ = no_instance;
  NodeId reduced_by_ = no_node;
};

}  // namespace

JointGraph shard_fully(const Trace& trace, const JointGraph& graph, const Sharding& sharing) {
  return FullSharding(trace, graph, sharing).run();
}

}  // namespace tidemark
