// One micro-batch of ZeRO 2, of gradients a and b that fill a bucket together; the partition is
// what the rank updates:
//   compute  … d a  pack a  d b  pack b  copy  all-reduce  pack into the partition  …  widen update
//   all-gather
// Buckets live from the first gradient of a backward to its end. With overlap_comm there are two of
// them, and what follows a full one runs beside the backward. ZeRO 1 does the same with complete
// gradients: behind the last backward, or beside it.
// Tested by tests/simulator/parallel/zero_test.cpp.
#include <algorithm>
#include <utility>

#include "simulator/graph/graph_rewriter.h"
#include "simulator/parallel/complete_gradients.h"
#include "simulator/parallel/flat_partitions.h"
#include "simulator/parallel/kept_gradient.h"
#include "simulator/parallel/share.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

class PartitionedGradients {
 public:
  PartitionedGradients(const Trace& trace, const JointGraph& graph, const Sharding& sharing)
      : trace_(trace),
        graph_(graph),
        sharing_(sharing),
        groups_(flat_groups(trace)),
        complete_(complete_gradients(trace, graph)),
        rewriter_(graph),
        lane_(sharing.overlaps ? Lane::Reduce : Lane::Compute),
        gradients_(trace.tensors.size()),
        values_(trace.tensors.size(), no_instance) {
    if (sharing.overlaps) rewriter_.use(Lane::Reduce);
    for (const FlatGroup& group : groups_) place_rest(group);
    for (std::size_t i = 0; i < graph.instances.size(); ++i) note(static_cast<InstanceId>(i));
    for (const CompleteGradient& gradient : complete_.all) trained_ += gradient.is_last ? 1 : 0;
  }

  JointGraph run() && {
    std::size_t next = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (n == index(complete_.end)) finish_backward();
      copy(graph_.nodes[n]);
      rewriter_.end_node();
      for (; next < complete_.all.size() && index(complete_.all[next].after) == n; ++next)
        pass(complete_.all[next], graph_.nodes[n]);
    }
    for (const FlatGroup& group : groups_) gather(group);
    return std::move(rewriter_).finish();
  }

 private:
  bool is_of_stage_one() const { return sharing_.kind == Sharding::Kind::Zero1; }
  std::int64_t ranks() const { return replicas_of(trace_.step.mesh); }
  OpId last_op() const { return graph_.nodes[index(complete_.end) - 1].op; }
  TensorId first() const { return groups_.front().places.front().parameter; }

  // All buckets have the dtype of the first parameter.
  std::int64_t element() const { return size_of(trace_[first()].dtype); }

  InstanceId buffer(std::int64_t bytes, Category category, bool stays = false) {
    return rewriter_.add({.size = Bytes{bytes},
                          .tensor = first(),
                          .role = Role::Temporary,
                          .category = category,
                          .persistent = stays});
  }

  // What fills up the flat parameters, and of fp32 ones the partition's copy, which is updated.
  void place_rest(const FlatGroup& group) {
    const std::int64_t padding = group.partition * ranks() - group.places.back().end;
    if (padding > 0) buffer(padding * size_of(group.dtype), Category::Parameter, true);
    if (group.dtype == DType::Float32)
      buffer(group.partition * size_of(group.dtype), Category::OptimizerState, true);
  }

  void note(InstanceId id) {
    const Instance& instance = graph_[id];
    if (instance.tensor == no_tensor || !is_trained(trace_, instance.tensor)) return;
    if (instance.role == Role::Gradient) gradients_[index(instance.tensor)].add(id);
    if (instance.role == Role::Value) values_[index(instance.tensor)] = id;
  }

  // What a later micro-batch contributes is partitioned by itself.
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

  void pass(const CompleteGradient& complete, const Node& made) {
    if (buckets_[0] == no_instance) open_buckets(made.op);
    if (is_of_stage_one() && !complete.is_last) return;
    if (is_of_stage_one() && !sharing_.overlaps) return waiting_.push_back(complete.parameter);
    collect(complete.parameter, made.lane, made.op);
    if (++collected_ == trained_) end_backward(made.op);
  }

  // As setup_buckets(), at the first gradient.
  void open_buckets(OpId op) {
    Operation open;
    const std::size_t count = sharing_.overlaps ? 2 : 1;
    for (std::size_t b = 0; b < count; ++b) {
      buckets_[b] = buffer(sharing_.reduce_bucket * element(), Category::Communication);
      open.write(buckets_[b]);
    }
    rewriter_.append(Task::Pack, Lane::Compute, op, open);
    is_fresh_ = true;
  }

  // Gradients that are larger than a bucket are reduced where they are.
  void collect(TensorId parameter, Lane lane, OpId op) {
    const std::int64_t count = numel(trace_[parameter].shape);
    if (elements_ + count > sharing_.reduce_bucket) {
      reduce(op);
      if (sharing_.overlaps) std::swap(buckets_[0], buckets_[1]);
    }
    if (count <= sharing_.reduce_bucket) {
      Operation pack;
      pack.read(gradient(parameter));
      if (elements_ > 0 || is_fresh_) pack.read(buckets_[0]);
      buckets_[0] = rewriter_.add_over(buckets_[0]);
      pack.write(buckets_[0]);
      rewriter_.append(Task::Pack, lane, op, pack);
      for (const TensorId each : in_bucket_) stand_for(each, buckets_[0]);
      stand_for(parameter, buckets_[0]);
      is_fresh_ = false;
    }
    elements_ += count;
    in_bucket_.push_back(parameter);
  }

  // The rank copies the slices of all ranks together, unless they are one, and adds them up among
  // all (use_multi_rank_bucket_allreduce). What it updates goes to its partition.
  void reduce(OpId op) {
    if (in_bucket_.empty()) return;
    rewriter_.order(reduced_by_, Lane::Compute);
    const bool is_large = elements_ > sharing_.reduce_bucket;
    InstanceId source = is_large ? gradient(in_bucket_.front()) : buckets_[0];
    if (partition_slices(groups_, in_bucket_) > 1) {
      Operation flatten;
      flatten.read(source);
      source = buffer(elements_ * element(), Category::Communication);
      flatten.write(source);
      rewriter_.append(Task::Pack, lane_, op, flatten);
    }
    Operation all;
    all.read(source);
    const InstanceId sum = rewriter_.add_over(source);
    all.write(sum);
    rewriter_.append(Task::AllReduce, lane_, op, all);
    if (source == buckets_[0]) buckets_[0] = sum;
    keep_partition(sum, op);
    elements_ = 0;
    in_bucket_.clear();
  }

  // As large as all parameters that have a part in it.
  std::int64_t kept_bytes() const {
    std::int64_t bytes = 0;
    for (const FlatGroup& group : groups_)
      for (const FlatPlace& place : group.places)
        if (place.begin < group.partition) bytes += size(trace_[place.parameter]).count;
    return bytes;
  }

  void keep_partition(InstanceId sum, OpId op) {
    Operation keep;
    keep.read(sum);
    if (partition_ == no_instance) {
      partition_ = buffer(kept_bytes(), Category::Gradient);
    } else {
      keep.read(partition_);
      partition_ = rewriter_.add_over(partition_);
    }
    keep.write(partition_);
    reduced_by_ = rewriter_.append(Task::Pack, lane_, op, keep);
    for (const TensorId parameter : in_bucket_) stand_for(parameter, partition_);
  }

  void end_backward(OpId op) {
    reduce(op);
    rewriter_.order(reduced_by_, Lane::Compute);
    for (InstanceId& bucket : buckets_) {
      if (bucket != no_instance) rewriter_.release(bucket);
      bucket = no_instance;
    }
    collected_ = 0;
    if (sum_ == no_instance) {
      sum_ = partition_;
    } else {
      Operation add;
      add.read(partition_);
      add.read(sum_);
      sum_ = rewriter_.add_over(sum_);
      add.write(sum_);
      rewriter_.append(Task::Accumulate, Lane::Compute, op, add);
    }
    partition_ = no_instance;
    for (const FlatGroup& group : groups_)
      for (const FlatPlace& place : group.places) stand_for(place.parameter, sum_);
  }

  // The partition is flattened, and widened to fp32 for the update.
  void finish_backward() {
    const OpId op = last_op();
    if (!waiting_.empty()) {
      std::ranges::sort(waiting_);
      for (const TensorId parameter : waiting_) collect(parameter, Lane::Compute, op);
      end_backward(op);
    }
    std::int64_t elements = 0, narrow = 0;
    for (const FlatGroup& group : groups_) {
      elements += group.partition;
      if (group.dtype != DType::Float32) narrow += group.partition * size_of(group.dtype);
    }
    Operation widen;
    widen.read(sum_);
    const InstanceId wide = buffer(elements * size_of(DType::Float32), Category::Gradient);
    if (narrow > 0) widen.write(buffer(narrow, Category::Gradient));
    widen.write(wide);
    rewriter_.append(Task::Pack, Lane::Compute, op, widen);
    for (const FlatGroup& group : groups_)
      for (const FlatPlace& place : group.places) stand_for(place.parameter, wide);
  }

  void gather(const FlatGroup& group) {
    Operation gather;
    for (const FlatPlace& place : group.places) {
      const InstanceId value = values_[index(place.parameter)];
      if (rewriter_.now(value) == no_instance) continue;
      gather.read(rewriter_.now(value));
      gather.write(rewriter_.write_over(value));
    }
    if (!gather.writes().empty())
      rewriter_.append(Task::AllGather, Lane::Compute, last_op(), gather);
  }

  const Trace& trace_;
  const JointGraph& graph_;
  const Sharding sharing_;
  const std::vector<FlatGroup> groups_;
  const CompleteGradients complete_;
  GraphRewriter rewriter_;
  const Lane lane_;                          ///< of reductions
  std::vector<GradientVersions> gradients_;  ///< by tensor
  std::vector<InstanceId> values_;           ///< by tensor: the last, of the old graph
  std::size_t trained_ = 0, collected_ = 0;  ///< parameters, and of them in this backward
  std::array<InstanceId, 2> buckets_ = {no_instance, no_instance};  ///< the first is filled
  bool is_fresh_ = false;                                           ///< never filled
  std::int64_t elements_ = 0;                                       ///< in the bucket
  std::vector<TensorId> in_bucket_;
  std::vector<TensorId> waiting_;                           ///< for the end of the backward
  InstanceId partition_ = no_instance, sum_ = no_instance;  ///< of this micro-batch, and of all
  NodeId reduced_by_ = no_node;
};

}  // namespace

JointGraph partition_gradients(const Trace& trace, const JointGraph& graph,
                               const Sharding& sharing) {
  if (complete_gradients(trace, graph).all.empty()) return graph;
  return PartitionedGradients(trace, graph, sharing).run();
}

}  // namespace tidemark
