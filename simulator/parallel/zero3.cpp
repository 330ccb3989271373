// A module, the one behind it, and the first's backward:
//   gather   pack 1  gather 1  pack 2  gather 2            …
//   compute                  unpack 1  forward 1  unpack 2  forward 2  …  backward 1
//   reduce                                                  …            pack d1  copy
//   reduce-scatter
// What is fetched together lies in one buffer until it is unpacked; of one parameter the buffer is
// the parameter. Gradients are copied to a bucket that stays, and from there to a buffer whose
// order is the ranks'; what the rank updates of all gradients lies in a buffer of its own. Tested
// by tests/simulator/parallel/zero3_test.cpp.
#include <algorithm>

#include "simulator/graph/graph_rewriter.h"
#include "simulator/parallel/complete_gradients.h"
#include "simulator/parallel/cut_parameters.h"
#include "simulator/parallel/kept_gradient.h"
#include "simulator/parallel/module_fetches.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/share.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

constexpr std::int64_t most_in_subgroup = 1'000'000'000;  // elements: sub_group_size

bool runs_module(const Node& node) {
  return node.op != no_op && (node.task == Task::Forward || node.task == Task::Recompute ||
                              node.task == Task::Backward);
}

class PartitionedParameters {
 public:
  PartitionedParameters(const Trace& trace, const JointGraph& graph, const Sharding& sharing)
      : trace_(trace),
        sharing_(sharing),
        graph_(cut_parameters(trace, graph)),
        complete_(complete_gradients(trace, graph_)),
        rewriter_(graph_),
        gather_lane_(sharing.overlaps ? Lane::Gather : Lane::Compute),
        reduce_lane_(sharing.overlaps ? Lane::Reduce : Lane::Compute),
        module_of_(graph_.nodes.size(), nowhere),
        shard_(trace.tensors.size(), no_instance),
        value_(trace.tensors.size(), no_instance),
        updated_(trace.tensors.size(), no_instance),
        kept_(trace.tensors.size(), no_instance),
        flight_of_(trace.tensors.size(), nowhere),
        gradients_(trace.tensors.size()) {
    if (sharing.overlaps) rewriter_.use(Lane::Gather), rewriter_.use(Lane::Reduce);
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) note(static_cast<InstanceId>(i));
    for (const CompleteGradient& gradient : complete_.all)
      if (gradient.is_last) trained_.push_back(gradient.parameter);
    std::ranges::sort(trained_);
    place_buffers();
    find_modules();
  }

  JointGraph run() && {
    std::size_t next = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::size_t m = module_of_[n];
      if (n == index(complete_.end)) finish_backward();
      if (m != nowhere) fetch(modules_[m], graph_.nodes[n].op);
      copy(graph_.nodes[n]);
      rewriter_.end_node();
      if (m != nowhere) free(modules_[m]);
      for (; next < complete_.all.size() && index(complete_.all[next].after) == n; ++next)
        collect(complete_.all[next].parameter, graph_.nodes[n].op);
    }
    gather_kept();
    return std::move(rewriter_).finish();
  }

 private:
  static constexpr std::size_t nowhere = SIZE_MAX;

  // Gathered and not yet unpacked.
  struct Flight {
    InstanceId gathered;
    std::vector<TensorId> parameters;
  };

  std::int64_t ranks() const { return replicas_of(trace_.step.mesh); }
  OpId last_op() const { return graph_.nodes[index(complete_.end) - 1].op; }
  std::int64_t element() const { return size_of(trace_[trained_.front()].dtype); }

  void note(InstanceId id) {
    const Instance& instance = graph_[id];
    if (instance.tensor == no_tensor || trace_[instance.tensor].category != Category::Parameter)
      return;
    const std::size_t t = index(instance.tensor);
    if (instance.role == Role::Gradient) gradients_[t].add(id);
    if (instance.role != Role::Shard) return;
    updated_[t] = id;
    if (instance.over != no_instance) return;
    value_[t] = id;
    shard_[t] = rewriter_.now(id);
  }

  InstanceId buffer(std::int64_t bytes, TensorId tensor, Category category, bool stays = false) {
    return rewriter_.add({.size = Bytes{bytes},
                          .tensor = tensor,
                          .role = Role::Temporary,
                          .category = category,
                          .persistent = stays});
  }

  InstanceId whole(TensorId parameter, bool stays) {
    return rewriter_.add({.size = size(trace_[parameter]),
                          .tensor = parameter,
                          .role = Role::Value,
                          .category = Category::Parameter,
                          .persistent = stays});
  }

  std::int64_t local_bytes(TensorId parameter) const {
    return size(local_parameter(trace_, parameter)).count;
  }

  // Small parameters are there as a whole, too.
  void place_buffers() {
    for (std::size_t t = 0; t < value_.size(); ++t) {
      const auto parameter = static_cast<TensorId>(t);
      if (value_[t] == no_instance || !is_persistent(trace_, parameter, sharing_)) continue;
      kept_[t] = whole(parameter, true);
      rewriter_.replace(value_[t], kept_[t]);
    }
    if (trained_.empty()) return;
    std::int64_t gradients = 0;
    for (const TensorId parameter : trained_) gradients += local_bytes(parameter);
    partition_ = buffer(gradients, trained_.front(), Category::Gradient, true);
    bucket_ =
        buffer(sharing_.reduce_bucket * element(), trained_.front(), Category::Communication, true);
  }

  // Micro-batch by micro-batch, for each forward begins to record anew.
  void find_modules() {
    std::vector<ModuleFetch> batch;
    std::size_t first = 0;
    bool is_backward = false;
    const auto end_batch = [&] {
      plan_fetches(trace_, sharing_, batch);
      modules_.insert(modules_.end(), batch.begin(), batch.end());
      batch.clear();
      first = modules_.size();
    };
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.task == Task::Forward && std::exchange(is_backward, false)) end_batch();
      if (node.task == Task::Backward) is_backward = true;
      ModuleFetch module = {parameters_of(node)};
      if (module.parameters.empty()) continue;
      module_of_[n] = first + batch.size();
      batch.push_back(std::move(module));
    }
    end_batch();
  }

  std::vector<TensorId> parameters_of(const Node& node) const {
    std::vector<TensorId> parameters;
    if (node.task == Task::Optimizer) return parameters;
    const auto add = [&](TensorId storage) {
      if (value_[index(storage)] != no_instance && !std::ranges::count(parameters, storage))
        parameters.push_back(storage);
    };
    if (runs_module(node))
      for (const TensorId input : trace_.inputs(trace_[node.op])) add(trace_[input].storage);
    for (const InstanceId read : graph_.reads(node))
      if (graph_[read].role == Role::Shard) add(graph_[read].tensor);
    return parameters;
  }

  void fetch(const ModuleFetch& module, OpId op) {
    gather(module.now, op);
    for (const TensorId parameter : module.parameters)
      if (flight_of_[index(parameter)] != nowhere)
        unpack(flights_[flight_of_[index(parameter)]], op);
    gather(module.ahead, op);
  }

  // The input is a part of the output.
  void gather(const std::vector<TensorId>& parameters, OpId op) {
    if (parameters.empty()) return;
    if (parameters.size() == 1) return gather_alone(parameters.front(), op);
    Operation pack;
    std::int64_t bytes = 0;
    for (const TensorId parameter : parameters) {
      pack.read(shard_[index(parameter)]);
      bytes += ranks() * local_bytes(parameter);
      flight_of_[index(parameter)] = flights_.size();
    }
    const InstanceId output = buffer(bytes, parameters.front(), Category::Communication);
    pack.write(output);
    rewriter_.append(Task::Pack, gather_lane_, op, pack);
    Operation all;
    all.read(output);
    flights_.push_back({rewriter_.add_over(output), parameters});
    all.write(flights_.back().gathered);
    rewriter_.append(Task::AllGather, gather_lane_, op, all);
  }

  void gather_alone(TensorId parameter, OpId op) {
    Operation all;
    all.read(shard_[index(parameter)]);
    all.write(whole(parameter, false));
    rewriter_.replace(value_[index(parameter)], all.writes().front());
    rewriter_.append(Task::AllGather, gather_lane_, op, all);
  }

  void unpack(const Flight& flight, OpId op) {
    Operation unpack;
    unpack.read(flight.gathered);
    for (const TensorId parameter : flight.parameters) {
      flight_of_[index(parameter)] = nowhere;
      unpack.write(whole(parameter, false));
      rewriter_.replace(value_[index(parameter)], unpack.writes().back());
    }
    rewriter_.append(Task::Pack, Lane::Compute, op, unpack);
  }

  void free(const ModuleFetch& module) {
    for (const TensorId parameter : module.freed) {
      const InstanceId value = value_[index(parameter)];
      rewriter_.release(rewriter_.now(value));
      rewriter_.replace(value, shard_[index(parameter)]);
    }
  }

  // What a later micro-batch contributes is reduced by itself.
  void copy(const Node& node) {
    if (node.task == Task::Accumulate &&
        rewriter_[rewriter_.now(graph_.reads(node).back())].role == Role::Temporary)
      return keep_gradient(trace_, graph_, node, rewriter_);
    rewriter_.copy_next();
  }

  InstanceId gradient(TensorId parameter) {
    return gradients_[index(parameter)].last_written(rewriter_);
  }

  void stand_for(TensorId parameter, InstanceId made) {
    gradients_[index(parameter)].stand_for(made, rewriter_);
  }

  // Gradients that are larger than the bucket are reduced from where they are. At the end of each
  // backward the host waits until all are (independent_gradient_partition_epilogue()): no later
  // micro-batch is gathered for before.
  void collect(TensorId parameter, OpId op) {
    const std::int64_t count = numel(trace_[parameter].shape);
    if (elements_ > 0 && elements_ + count > sharing_.reduce_bucket) reduce(op);
    if (count <= sharing_.reduce_bucket) {
      Operation pack;
      pack.read(gradient(parameter));
      if (elements_ > 0) pack.read(bucket_);
      bucket_ = rewriter_.add_over(bucket_);
      pack.write(bucket_);
      rewriter_.append(Task::Pack, reduce_lane_, op, pack);
      for (const TensorId each : in_bucket_) stand_for(each, bucket_);
      stand_for(parameter, bucket_);
    }
    elements_ += count;
    in_bucket_.push_back(parameter);
    if (++collected_ < trained_.size()) return;
    reduce(op);
    rewriter_.order(reduced_by_, Lane::Compute);
    if (sharing_.overlaps) rewriter_.order(reduced_by_, Lane::Gather);
    collected_ = 0;
    is_first_batch_ = false;
  }

  // reduce_scatter_coalesced(): a buffer with each rank's parts side by side. A large gradient that
  // divides evenly is one already.
  void reduce(OpId op) {
    const bool is_large = elements_ > sharing_.reduce_bucket;
    const bool is_in_order = is_large && elements_ % ranks() == 0;
    std::int64_t local = 0;
    for (const TensorId parameter : in_bucket_) local += local_bytes(parameter);
    InstanceId source = is_large ? gradient(in_bucket_.front()) : bucket_;
    const auto made = [&](std::int64_t bytes) {
      return buffer(bytes, in_bucket_.front(), Category::Communication);
    };
    if (!is_in_order) {
      Operation order;
      order.read(source);
      order.write(source = made(ranks() * local));
      rewriter_.append(Task::Pack, reduce_lane_, op, order);
    }
    Operation scatter;
    scatter.read(source);
    const InstanceId reduced = is_in_order ? made(local) : rewriter_.add_over(source);
    scatter.write(reduced);
    rewriter_.append(Task::ReduceScatter, reduce_lane_, op, scatter);
    keep(reduced, op);
    elements_ = 0;
    in_bucket_.clear();
  }

  // The first micro-batch's is copied over what was there, and those of others are added.
  void keep(InstanceId reduced, OpId op) {
    Operation keep;
    keep.read(reduced);
    if (!is_first_batch_ || has_kept_) keep.read(partition_);
    partition_ = rewriter_.add_over(partition_);
    keep.write(partition_);
    reduced_by_ =
        rewriter_.append(is_first_batch_ ? Task::Pack : Task::Accumulate, reduce_lane_, op, keep);
    has_kept_ = true;
    for (const TensorId parameter : in_bucket_) stand_for(parameter, partition_);
  }

  // What the optimizer takes at once.
  std::int64_t largest_subgroup() const {
    std::int64_t now = 0, most = 0;
    for (const TensorId parameter : trained_) {
      now += numel(local_parameter(trace_, parameter).shape);
      most = std::max(most, now);
      if (now >= most_in_subgroup) now = 0;
    }
    return most;
  }

  // The rank's gradients are flattened and widened to fp32; parameters are those of the rank.
  void finish_backward() {
    for (std::size_t t = 0; t < kept_.size(); ++t)
      if (kept_[t] != no_instance) rewriter_.replace(value_[t], shard_[t]);
    if (trained_.empty()) return;
    const TensorId first = trained_.front();
    const std::int64_t elements = largest_subgroup();
    const InstanceId wide = buffer(elements * size_of(DType::Float32), first, Category::Gradient);
    Operation widen;
    widen.read(partition_);
    if (trace_[first].dtype != DType::Float32)
      widen.write(buffer(elements * element(), first, Category::Gradient));
    widen.write(wide);
    rewriter_.append(Task::Pack, Lane::Compute, last_op(), widen);
    for (const TensorId parameter : trained_) stand_for(parameter, wide);
  }

  // As they are after the update.
  void gather_kept() {
    Operation pack, unpack;
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      if (kept_[t] == no_instance) continue;
      pack.read(rewriter_.now(updated_[t]));
      bytes += ranks() * local_bytes(static_cast<TensorId>(t));
      unpack.write(rewriter_.add_over(kept_[t]));
    }
    if (bytes == 0) return;
    const InstanceId output =
        buffer(bytes, rewriter_[unpack.writes().front()].tensor, Category::Communication);
    pack.write(output);
    rewriter_.append(Task::Pack, Lane::Compute, last_op(), pack);
    Operation all;
    all.read(output);
    all.write(rewriter_.add_over(output));
    rewriter_.append(Task::AllGather, Lane::Compute, last_op(), all);
    unpack.read(all.writes().front());
    rewriter_.append(Task::Pack, Lane::Compute, last_op(), unpack);
  }

  const Trace& trace_;
  const Sharding sharing_;
  const JointGraph graph_;
  const CompleteGradients complete_;
  GraphRewriter rewriter_;
  const Lane gather_lane_, reduce_lane_;
  std::vector<TensorId> trained_;
  std::vector<ModuleFetch> modules_;
  std::vector<std::size_t> module_of_;  ///< by node
  std::vector<InstanceId> shard_;       ///< by tensor, of the new graph
  std::vector<InstanceId> value_;       ///< by tensor, of the old graph
  std::vector<InstanceId> updated_;     ///< by tensor, of the old graph: the last
  std::vector<InstanceId> kept_;        ///< by tensor that is never freed: the whole
  std::vector<Flight> flights_;
  std::vector<std::size_t> flight_of_;       ///< by tensor
  std::vector<GradientVersions> gradients_;  ///< by tensor
  InstanceId bucket_ = no_instance, partition_ = no_instance;
  std::int64_t elements_ = 0;  ///< in the bucket
  std::vector<TensorId> in_bucket_;
  std::size_t collected_ = 0;  ///< gradients in this backward
  bool is_first_batch_ = true, has_kept_ = false;
  NodeId reduced_by_ = no_node;
};

}  // namespace

JointGraph partition_parameters(const Trace& trace, const JointGraph& graph,
                                const Sharding& sharing) {
  return PartitionedParameters(trace, graph, sharing).run();
}

}  // namespace tidemark
