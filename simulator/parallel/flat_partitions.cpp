// Example, two ranks, parameters of 5 and 4 elements: [5][4][fill up to 12], partitions of 6. The
// second lies in both, so gradients of the second and the first are three slices: 0, 1 and 0.
#include "simulator/parallel/flat_partitions.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "simulator/parallel/complete_gradients.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

constexpr std::int64_t alignment = 2;  // elements per rank: nccl_start_alignment_factor

const FlatPlace* place_of(const FlatGroup& group, TensorId parameter) {
  const auto found = std::ranges::lower_bound(group.places, parameter, {}, &FlatPlace::parameter);
  const bool is_here = found != group.places.end() && found->parameter == parameter;
  return is_here ? &*found : nullptr;
}

}  // namespace

std::vector<FlatGroup> flat_groups(const Trace& trace) {
  std::map<DType, FlatGroup> by_dtype;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (!is_trained(trace, id)) continue;
    FlatGroup& group = by_dtype[trace[id].dtype];
    group.dtype = trace[id].dtype;
    const std::int64_t begin = group.places.empty() ? 0 : group.places.back().end;
    group.places.push_back({id, begin, begin + numel(trace[id].shape)});
  }
  const std::int64_t unit = alignment * replicas_of(trace.step.mesh);
  std::vector<FlatGroup> groups;
  for (auto& [dtype, group] : by_dtype) {
    group.partition = ceil_div(group.places.back().end, unit) * alignment;
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<std::int64_t> elements_of_first_partition(const Trace& trace) {
  std::vector<std::int64_t> elements(trace.tensors.size());
  for (const FlatGroup& group : flat_groups(trace))
    for (const FlatPlace& place : group.places)
      elements[index(place.parameter)] =
          std::max<std::int64_t>(0, std::min(place.end, group.partition) - place.begin);
  return elements;
}

std::int64_t partition_slices(const std::vector<FlatGroup>& groups,
                              const std::vector<TensorId>& parameters) {
  std::int64_t slices = 0, before = -1;
  for (const TensorId parameter : parameters)
    for (const FlatGroup& group : groups) {
      const FlatPlace* const place = place_of(group, parameter);
      if (!place) continue;
      const std::int64_t first = place->begin / group.partition;
      const std::int64_t last = std::max(first, (place->end - 1) / group.partition);
      slices += last - first + (first == before ? 0 : 1);
      before = last;
    }
  return slices;
}

}  // namespace tidemark
