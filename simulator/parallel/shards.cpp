// Cuts the first dimension, or all elements, into equal parts.
#include "simulator/parallel/shards.h"

#include "base/units.h"
#include "simulator/parallel/contiguous.h"
#include "simulator/parallel/flat_partitions.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

Shape shard_of(const Shape& shape, std::int64_t ranks) {
  if (shape.rank() == 0) return shape;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = ceil_div(dims[0], ranks);
  return Shape(dims);
}

}  // namespace

bool parameters_are_cut(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  return sharing && (is_fsdp(sharing->kind) || sharing->kind == Sharding::Kind::Zero3);
}

std::int64_t ranks_that_share(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  const bool is_hybrid = sharing && sharing->shard_ranks > 0;
  return is_hybrid ? sharing->shard_ranks : replicas_of(step.mesh);
}

bool states_are_cut(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  if (!sharing || sharing->kind == Sharding::Kind::Ddp) return false;
  return sharing->kind != Sharding::Kind::Megatron || sharing->cuts_states;
}

Tensor local_parameter(const Trace& trace, TensorId parameter) {
  Tensor local = trace[parameter];
  if (!parameters_are_cut(trace.step)) return local;
  const std::int64_t ranks = ranks_that_share(trace.step);
  const Sharding::Kind kind = trace.step.shard->kind;
  if (kind == Sharding::Kind::Fsdp2) {
    local.shape = shard_of(local.shape, ranks);
  } else {
    local.shape = {(numel(local.shape) + ranks - 1) / ranks};
  }
  if (is_zero(kind)) return local;
  if (trace.step.master_weights && is_floating(local.dtype)) local.dtype = DType::Float32;
  return local;
}

std::vector<std::int64_t> updated_elements(const Trace& trace) {
  const std::optional<Sharding> sharing = sharing_of(trace.step);
  if (!sharing) return {};
  if (sharing->kind == Sharding::Kind::Megatron && sharing->cuts_states)
    return elements_of_first_rank(trace, *sharing);
  const bool is_flat =
      sharing->kind == Sharding::Kind::Zero1 || sharing->kind == Sharding::Kind::Zero2;
  return is_flat ? elements_of_first_partition(trace) : std::vector<std::int64_t>();
}

std::int64_t padded_numel(const Trace& trace, TensorId parameter) {
  return numel(local_parameter(trace, parameter).shape) * ranks_that_share(trace.step);
}

}  // namespace tidemark
