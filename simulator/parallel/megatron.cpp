// Two micro-batches and one bucket; gradients of a and b are added to the bucket as they are made:
//   compute  … d a  add a  d b  add b  …  d a  add a  d b  add b         update
//   reduce                                                  reduce-scatter      all-gather
// Where products add to main gradients themselves, `d a` writes no gradient of a weight and `add a`
// is part of it. Main gradients stay between steps. With `overlap` a bucket is reduced as soon as
// the last micro-batch has added to it, else behind the backward. The distributed optimizer updates
// the rank's part of the parameters, which are gathered behind it.
// Tested by tests/simulator/parallel/{megatron,fused_gradients}_test.cpp.
#include "simulator/graph/graph_rewriter.h"
#include "simulator/parallel/complete_gradients.h"
#include "simulator/parallel/contiguous.h"
#include "simulator/parallel/fused_gradients.h"
#include "simulator/parallel/kept_gradient.h"
#include "simulator/parallel/share.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

class MainGradients {
 public:
  MainGradients(const Trace& trace, const JointGraph& graph, const Sharding& sharing)
      : trace_(trace),
        graph_(graph),
        sharing_(sharing),
        layout_(contiguous_layout(trace, sharing)),
        rewriter_(graph),
        bucket_of_(trace.tensors.size(), nowhere),
        gradients_(trace.tensors.size()),
        values_(trace.tensors.size(), no_instance),
        missing_(layout_.buckets.size()),
        complete_(complete_gradients(trace, graph)),
        end_(index(complete_.end)),
        is_fused_(fuses_accumulation(trace.step)) {
    for (const ContiguousPlace& place : layout_.places)
      bucket_of_[index(place.parameter)] = place.bucket;
    if (ranks() > 1) rewriter_.use(Lane::Reduce);
    first_.assign(layout_.buckets.size(), no_tensor);
    for (const ContiguousPlace& place : layout_.places)
      if (first_[place.bucket] == no_tensor) first_[place.bucket] = place.parameter;
    for (std::size_t b = 0; b < layout_.buckets.size(); ++b) main_.push_back(place_main(b));
    place_padding();
    if (is_fused_)
      for (const DummyGradient& dummy : dummy_gradients(trace))
        place(dummy.size, Category::Gradient, dummy.weight);
    for (std::size_t i = 0; i < graph.instances.size(); ++i) note(static_cast<InstanceId>(i));
    for (const CompleteGradient& gradient : complete_.all)
      if (gradient.is_last) ++missing_[bucket_of_[index(gradient.parameter)]];
  }

  JointGraph run() && {
    std::size_t next = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (n == end_) reduce_all();
      copy(graph_.nodes[n]);
      rewriter_.end_node();
      for (; next < complete_.all.size() && index(complete_.all[next].after) == n; ++next)
        add_to_main(complete_.all[next], graph_.nodes[n]);
    }
    if (sharing_.cuts_states && ranks() > 1) gather_parameters();
    for (const InstanceId copy : wide_) rewriter_.release(copy);
    return std::move(rewriter_).finish();
  }

 private:
  static constexpr std::size_t nowhere = SIZE_MAX;

  std::int64_t ranks() const { return replicas_of(trace_.step.mesh); }
  bool is_shared(std::size_t b) const { return layout_.buckets[b].replicas > 1; }

  DType main_dtype(const ContiguousBucket& bucket) const {
    return sharing_.gradients_are_wide ? DType::Float32 : bucket.dtype;
  }

  InstanceId place_main(std::size_t b) {
    const ContiguousBucket& bucket = layout_.buckets[b];
    return place(Bytes{bucket.numel() * size_of(main_dtype(bucket))}, Category::Gradient,
                 first_[b]);
  }

  InstanceId place(Bytes size, Category category, TensorId first, bool stays = true) {
    return rewriter_.add({.size = size,
                          .tensor = first,
                          .role = Role::Temporary,
                          .category = category,
                          .persistent = stays});
  }

  // Of the buffer that parameters of the distributed optimizer are parts of.
  void place_padding() {
    if (!sharing_.cuts_states) return;
    Bytes padding;
    for (const ContiguousBucket& bucket : layout_.buckets)
      padding.count += bucket.numel() * size_of(bucket.dtype);
    for (const ContiguousPlace& at : layout_.places)
      padding.count -= size(trace_[at.parameter]).count;
    if (padding > Bytes{}) place(padding, Category::Parameter, first_.front());
  }

  bool is_placed(TensorId tensor) const {
    return tensor != no_tensor && bucket_of_[index(tensor)] != nowhere;
  }

  void note(InstanceId id) {
    const Instance& instance = graph_[id];
    if (!is_placed(instance.tensor)) return;
    if (instance.role == Role::Gradient) gradients_[index(instance.tensor)].add(id);
    if (instance.role == Role::Value) values_[index(instance.tensor)] = id;
  }

  bool is_main(InstanceId made) const {
    return rewriter_[made].role == Role::Temporary &&
           rewriter_[made].category == Category::Gradient;
  }

  // What a micro-batch contributes is added to the main gradient, once it is complete.
  void copy(const Node& node) {
    if (const InstanceId fused = fused_gradient(node); fused != no_instance)
      return add_in_product(node, fused);
    if (node.task != Task::Accumulate || !is_main(rewriter_.now(graph_.reads(node).back())))
      return void(rewriter_.copy_next());
    const InstanceId added = rewriter_.now(graph_.reads(node)[0]);
    if (!is_main(added)) return keep_gradient(trace_, graph_, node, rewriter_);
    rewriter_.skip_next();
    rewriter_.replace(graph_.writes(node)[0], added);
  }

  // What the node writes of the weight of a product that adds it to the main gradient.
  InstanceId fused_gradient(const Node& node) const {
    const bool makes_gradients = node.task == Task::Backward || node.task == Task::WeightGradient;
    if (!is_fused_ || !makes_gradients) return no_instance;
    const TensorId weight = weight_of_product(trace_, trace_[node.op]);
    for (const InstanceId id : graph_.writes(node))
      if (weight != no_tensor && graph_[id].role == Role::Gradient && graph_[id].tensor == weight)
        return id;
    return no_instance;
  }

  void add_in_product(const Node& node, InstanceId gradient) {
    rewriter_.skip_next();
    const std::size_t b = bucket_of_[index(graph_[gradient].tensor)];
    Operation product = rewriter_.reads_of(node);
    for (const InstanceId id : graph_.writes(node))
      if (id != gradient) product.write(rewriter_.written(id));
    write_main(product, b);
    rewriter_.append(node.task, node.lane, node.op, product);
    rewriter_.replace(gradient, main_[b]);
  }

  InstanceId gradient(TensorId parameter) {
    return gradients_[index(parameter)].last_written(rewriter_);
  }

  void stand_for(TensorId parameter, InstanceId main) {
    gradients_[index(parameter)].stand_for(main, rewriter_);
  }

  void add_to_main(const CompleteGradient& complete, const Node& made) {
    const std::size_t b = bucket_of_[index(complete.parameter)];
    if (const InstanceId made_last = gradient(complete.parameter); !is_main(made_last)) {
      Operation add;
      add.read(made_last);
      write_main(add, b);
      rewriter_.append(Task::Accumulate, made.lane, made.op, add);
    }
    stand_for(complete.parameter, main_[b]);
    if (!complete.is_last || --missing_[b] > 0) return;
    if (sharing_.overlaps && is_shared(b)) reduce(b, made.op);
  }

  void write_main(Operation& operation, std::size_t b) {
    operation.read(main_[b]);
    main_[b] = rewriter_.add_over(main_[b]);
    operation.write(main_[b]);
  }

  void reduce(std::size_t b, OpId op) {
    Operation reduce;
    write_main(reduce, b);
    rewriter_.append(sharing_.cuts_states ? Task::ReduceScatter : Task::AllReduce, Lane::Reduce, op,
                     reduce);
  }

  // The optimizer reads what is reduced; of main gradients in 16 bits an fp32 copy, which
  // zero_grad() frees.
  void reduce_all() {
    const OpId op = graph_.nodes[end_ - 1].op;
    for (std::size_t b = 0; b < main_.size(); ++b) {
      if (!sharing_.overlaps && is_shared(b)) reduce(b, op);
      if (!sharing_.gradients_are_wide) widen(b, op);
    }
    for (const ContiguousPlace& place : layout_.places)
      stand_for(place.parameter, main_[place.bucket]);
  }

  void widen(std::size_t b, OpId op) {
    const std::int64_t replicas = layout_.buckets[b].replicas;
    const std::int64_t parts =
        sharing_.cuts_states ? std::max<std::int64_t>(1, replicas / sharing_.instances) : 1;
    const std::int64_t elements = layout_.buckets[b].numel() / parts;
    Operation widen;
    widen.read(main_[b]);
    main_[b] =
        place(Bytes{elements * size_of(DType::Float32)}, Category::Gradient, first_[b], false);
    wide_.push_back(main_[b]);
    widen.write(main_[b]);
    rewriter_.append(Task::Pack, Lane::Compute, op, widen);
  }

  void gather_parameters() {
    const OpId op = graph_.nodes[end_ - 1].op;
    for (std::size_t b = 0; b < main_.size(); ++b) {
      if (!is_shared(b)) continue;
      Operation gather;
      for (const ContiguousPlace& place : layout_.places) {
        const InstanceId value = values_[index(place.parameter)];
        if (place.bucket != b || rewriter_.now(value) == no_instance) continue;
        gather.read(rewriter_.now(value));
        gather.write(rewriter_.write_over(value));
      }
      if (!gather.writes().empty()) rewriter_.append(Task::AllGather, Lane::Reduce, op, gather);
    }
  }

  const Trace& trace_;
  const JointGraph& graph_;
  const Sharding sharing_;
  const ContiguousLayout layout_;
  GraphRewriter rewriter_;
  std::vector<std::size_t> bucket_of_;       ///< by tensor
  std::vector<TensorId> first_;              ///< by bucket: a parameter of it
  std::vector<GradientVersions> gradients_;  ///< by tensor
  std::vector<InstanceId> values_;           ///< by tensor: the last, of the old graph
  std::vector<std::size_t> missing_;         ///< by bucket, of the last micro-batch
  std::vector<InstanceId> main_;             ///< by bucket, of the new graph
  const CompleteGradients complete_;
  const std::size_t end_;  ///< of the last backward: a node
  const bool is_fused_;
  std::vector<InstanceId> wide_;  ///< fp32 copies
};

}  // namespace

JointGraph keep_main_gradients(const Trace& trace, const JointGraph& graph,
                               const Sharding& sharing) {
  if (contiguous_layout(trace, sharing).places.empty()) return graph;
  return MainGradients(trace, graph, sharing).run();
}

}  // namespace tidemark
