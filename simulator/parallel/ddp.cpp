// A bucket of two gradients:
//   compute   backward → d a   pack d a into the bucket   backward → d b   pack d b   …   unpack
//   reduce                                                            all-reduce the bucket
// Buckets stay between steps. Without views the averages are copied back behind the backward;
// with them, what the backward made is freed at once, and the optimizer reads the buckets.
// Tested by tests/simulator/parallel/ddp_test.cpp.
#include <algorithm>

#include "simulator/graph/graph_rewriter.h"
#include "simulator/parallel/buckets.h"
#include "simulator/parallel/share.h"

namespace tidemark {
namespace {

class BucketReduction {
 public:
  BucketReduction(const Trace& trace, const JointGraph& graph, const Sharding& sharing)
      : graph_(graph),
        has_views_(sharing.bucket_view),
        rewriter_(graph),
        ready_(ready_gradients(trace, graph)),
        buckets_(buckets_of(trace, ready_, sharing)),
        bucket_of_(trace.tensors.size()),
        gradients_of_(trace.tensors.size()) {
    rewriter_.use(Lane::Reduce);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      for (const TensorId parameter : buckets_[b].parameters) bucket_of_[index(parameter)] = b;
      now_.push_back(rewriter_.add({.size = buckets_[b].size,
                                    .tensor = buckets_[b].parameters.front(),
                                    .role = Role::Temporary,
                                    .category = Category::Communication,
                                    .persistent = true}));
      missing_.push_back(buckets_[b].parameters.size());
    }
    for (std::size_t i = 0; i < graph.instances.size(); ++i) {
      const Instance& instance = graph.instances[i];
      if (instance.role == Role::Gradient && instance.tensor != no_tensor)
        gradients_of_[index(instance.tensor)].push_back(static_cast<InstanceId>(i));
    }
  }

  JointGraph run() && {
    std::size_t next = 0;
    bool is_back = false;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_back && next == ready_.size()) {
        copy_back();
        is_back = true;
      }
      rewriter_.copy_next();
      rewriter_.end_node();
      for (; next < ready_.size() && index(ready_[next].after) == n; ++next)
        collect(ready_[next].parameter, graph_.nodes[n]);
    }
    if (!is_back) copy_back();
    return std::move(rewriter_).finish();
  }

 private:
  // The last version is the complete gradient, and the first names its memory.
  const std::vector<InstanceId>& versions(TensorId parameter) const {
    return gradients_of_[index(parameter)];
  }
  InstanceId gradient(TensorId parameter) const {
    const auto& all = versions(parameter);
    const auto written = std::find_if(
        all.rbegin(), all.rend(), [&](InstanceId id) { return rewriter_.now(id) != no_instance; });
    return rewriter_.now(*written);
  }

  void collect(TensorId parameter, const Node& made) {
    const std::size_t b = bucket_of_[index(parameter)];
    Operation pack;
    pack.read(gradient(parameter));
    pack.read(now_[b]);
    write_bucket(pack, b);
    rewriter_.append(Task::Pack, made.lane, made.op, pack);
    if (has_views_)
      for (const InstanceId version : versions(parameter)) rewriter_.replace(version, now_[b]);
    if (--missing_[b] > 0) return;
    Operation reduce;
    reduce.read(now_[b]);
    write_bucket(reduce, b);
    rewriter_.append(Task::AllReduce, Lane::Reduce, made.op, reduce);
    if (has_views_)
      for (const TensorId each : buckets_[b].parameters)
        for (const InstanceId version : versions(each)) rewriter_.replace(version, now_[b]);
    reduced_by_.push_back({b, made.op});
  }

  void write_bucket(Operation& operation, std::size_t b) {
    now_[b] = rewriter_.add_over(now_[b]);
    operation.write(now_[b]);
  }

  // The backward ends when the last bucket is there.
  void copy_back() {
    if (has_views_) return;
    for (const auto& [b, op] : reduced_by_) {
      Operation unpack;
      unpack.read(now_[b]);
      for (const TensorId parameter : buckets_[b].parameters) {
        const InstanceId averaged = rewriter_.add_over(gradient(parameter));
        unpack.write(averaged);
        for (const InstanceId version : versions(parameter)) rewriter_.replace(version, averaged);
      }
      rewriter_.append(Task::Pack, Lane::Compute, op, unpack);
    }
  }

  struct Reduced {
    std::size_t bucket;
    OpId op;
  };

  const JointGraph& graph_;
  const bool has_views_;
  GraphRewriter rewriter_;
  const std::vector<ReadyGradient> ready_;
  const std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;                 ///< by tensor
  std::vector<std::vector<InstanceId>> gradients_of_;  ///< by tensor, of the old graph
  std::vector<InstanceId> now_;                        ///< by bucket
  std::vector<std::size_t> missing_;                   ///< by bucket: gradients to come
  std::vector<Reduced> reduced_by_;                    ///< in order
};

}  // namespace

JointGraph reduce_in_buckets(const Trace& trace, const JointGraph& graph, const Sharding& sharing) {
  return BucketReduction(trace, graph, sharing).run();
}

}  // namespace tidemark
