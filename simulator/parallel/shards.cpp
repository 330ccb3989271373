// Cuts the first dimension into equal parts.
#include "simulator/parallel/shards.h"

namespace tidemark {
namespace {

Shape shard_of(const Shape& shape, std::int64_t ranks) {
  if (shape.rank() == 0) return shape;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = (dims[0] + ranks - 1) / ranks;
  return Shape(dims);
}

}  // namespace

bool parameters_are_cut(const StepOptions& step) {
  const std::optional<Sharding> sharing = sharing_of(step);
  return sharing && sharing->kind == Sharding::Kind::Fsdp2;
}

Tensor local_parameter(const Trace& trace, TensorId parameter) {
  Tensor local = trace[parameter];
  if (!parameters_are_cut(trace.step)) return local;
  local.shape = shard_of(local.shape, trace.step.mesh[Axis::Data]);
  if (trace.step.master_weights && is_floating(local.dtype)) local.dtype = DType::Float32;
  return local;
}

std::int64_t padded_numel(const Trace& trace, TensorId parameter) {
  return numel(local_parameter(trace, parameter).shape) * trace.step.mesh[Axis::Data];
}

}  // namespace tidemark
