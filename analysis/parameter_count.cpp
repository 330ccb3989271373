// Counts elements, not bytes: a packed weight is built again as what it was.
#include "analysis/parameter_count.h"

namespace tidemark {

ParameterCount count_parameters(const Trace& trace) {
  ParameterCount count;
  for (const Tensor& tensor : trace.tensors) {
    if (tensor.category != Category::Parameter || &trace[tensor.storage] != &tensor) continue;
    count.all += numel(tensor.shape);
    if (tensor.trainable) count.trainable += numel(tensor.shape);
  }
  return count;
}

ParameterCount count_parameters(const Model& model, StepOptions step) {
  step.mesh = {}, step.shard = {};
  step.sequence_parallel = false;
  step.base = {};
  return count_parameters(build_trace(model, step));
}

}  // namespace tidemark
