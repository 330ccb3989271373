// Example, two ranks, parameters of 100 and 70 elements in the order of the model:
//   [70] [pad to 128] [100] [pad to 256]      rank 0 updates elements 0 to 127: the second of them
#include "simulator/parallel/contiguous.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/units.h"
#include "simulator/parallel/complete_gradients.h"
#include "traces/expert_ops.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

constexpr std::int64_t start_unit = 64, end_unit = 128;  // elements
constexpr std::int64_t least_bucket = 40'000'000, bucket_per_rank = 1'000'000;

/// Parameters of one buffer.
struct BufferKind {
  bool of_experts;
  DType dtype;

  auto operator<=>(const BufferKind&) const = default;
};

std::int64_t cut_among(std::int64_t replicas, const Sharding& sharing) {
  return std::max<std::int64_t>(1, replicas / sharing.instances);
}

class LayoutOfKind {
 public:
  LayoutOfKind(const Trace& trace, const Sharding& sharing, BufferKind kind,
               ContiguousLayout& layout)
      : trace_(trace),
        cuts_(sharing.cuts_states),
        replicas_(kind.of_experts ? expert_replicas_of(trace.step.mesh)
                                  : replicas_of(trace.step.mesh)),
        bucket_unit_(std::lcm(cut_among(replicas_, sharing), end_unit)),
        limit_(limit_of(trace, sharing)),
        dtype_(kind.dtype),
        layout_(layout) {}

  void add(TensorId parameter) {
    const std::int64_t begin = cuts_ ? round_up(end_, start_unit) : end_;
    end_ = begin + numel(trace_[parameter].shape);
    layout_.places.push_back({parameter, begin, end_, layout_.buckets.size()});
    if (end_ - begin_ >= limit_) close();
  }

  void close() {
    if (end_ == begin_) return;
    if (cuts_) end_ = begin_ + round_up(end_ - begin_, bucket_unit_);
    layout_.buckets.push_back({dtype_, begin_, end_, replicas_});
    begin_ = end_;
  }

 private:
  static std::int64_t limit_of(const Trace& trace, const Sharding& sharing) {
    const bool is_first_stage = trace.step.rank.value_or(RankClass()).stage == 0;
    if (!sharing.overlaps || !is_first_stage) return INT64_MAX;
    return std::max(least_bucket, bucket_per_rank * replicas_of(trace.step.mesh));
  }

  const Trace& trace_;
  const bool cuts_;
  const std::int64_t replicas_, bucket_unit_, limit_;
  const DType dtype_;
  ContiguousLayout& layout_;
  std::int64_t begin_ = 0, end_ = 0;  ///< of the open bucket
};

}  // namespace

ContiguousLayout contiguous_layout(const Trace& trace, const Sharding& sharing) {
  const std::vector<bool> of_experts = parameters_of_experts(trace);
  std::map<BufferKind, std::vector<TensorId>> by_kind;
  for (std::size_t t = trace.tensors.size(); t-- > 0;)
    if (const auto id = static_cast<TensorId>(t); is_trained(trace, id))
      by_kind[{of_experts[t], trace[id].dtype}].push_back(id);
  ContiguousLayout layout;
  for (const auto& [kind, parameters] : by_kind) {
    LayoutOfKind of_kind(trace, sharing, kind, layout);
    for (const TensorId parameter : parameters) of_kind.add(parameter);
    of_kind.close();
  }
  return layout;
}

std::vector<std::int64_t> elements_of_first_rank(const Trace& trace, const Sharding& sharing) {
  const ContiguousLayout layout = contiguous_layout(trace, sharing);
  std::vector<std::int64_t> elements(trace.tensors.size());
  for (const ContiguousPlace& place : layout.places) {
    const ContiguousBucket& bucket = layout.buckets[place.bucket];
    const std::int64_t end = bucket.begin + bucket.numel() / cut_among(bucket.replicas, sharing);
    elements[index(place.parameter)] =
        std::max<std::int64_t>(0, std::min(place.end, end) - place.begin);
  }
  return elements;
}

}  // namespace tidemark
