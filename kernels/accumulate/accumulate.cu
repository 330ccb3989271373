#include "kernels/accumulate/accumulate.cuh"
#include "kernels/accumulate/accumulate.h"

namespace tidemark::cuda {

void fill(const Call& call, Launch& launch) { fill_with(launch, call.outputs[0], 1); }

// An input that is longer than the output is summed to scratch first; then all are added at once,
// so that an output which is an input too is read before it is written.
void accumulate(const Call& call, Launch& launch) {
  const Array& output = call.outputs[0];
  CHECK(call.inputs.size() <= SumFunction::inputs);
  const Array absent;
  std::array<Array, SumFunction::inputs> short_inputs;
  std::array<const Array*, SumFunction::inputs + 1> operands;
  operands.fill(&absent);
  operands.back() = &output;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    operands[i] = &call.inputs[i];
    if (numel(call.inputs[i].shape) <= numel(output.shape)) continue;
    const Layout layout = dense(output.shape);
    Array& sum = short_inputs[i];
    sum = array_at(scratch(launch, numel(output.shape) * size_of(DType::Float32), i),
                   DType::Float32, layout);
    reduce(launch, "accumulate", Identity{}, call.inputs[i].shape, {&call.inputs[i]}, sum, 4 + i);
    operands[i] = &sum;
  }
  pointwise(launch, "accumulate", PerElement<SumFunction>{}, operands);
}

void subtract(const Call& call, Launch& launch) {
  pointwise(launch, "subtract", PerElement<SubtractFunction>{},
            {&call.inputs[0], &call.inputs[1], &call.outputs[0]});
}

}  // namespace tidemark::cuda
