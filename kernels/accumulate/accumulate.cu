// Sums inputs that are longer to scratch first, then adds all in one pointwise kernel.
#include "kernels/accumulate/accumulate.cuh"
#include "kernels/accumulate/accumulate.h"

namespace tidemark::cuda {

namespace {

constexpr std::size_t most_inputs = 4;

/// With as few operands as there are: absent ones would keep the fast kernel from running.
template <std::size_t N>
void add_up(const std::array<const Array*, most_inputs>& inputs, const Array& output,
            Launch& launch) {
  std::array<const Array*, N + 1> operands;
  std::copy(inputs.begin(), inputs.begin() + N, operands.begin());
  operands.back() = &output;
  pointwise(launch, "accumulate", PerElement<SumFunction<static_cast<int>(N)>>{}, operands);
}

}  // namespace

void fill(const Call& call, Launch& launch) { fill_with(launch, call.outputs[0], 1); }

// An input that is longer than the output is summed to scratch first; then all are added at once,
// so that an output which is an input too is read before it is written.
void accumulate(const Call& call, Launch& launch) {
  const Array& output = call.outputs[0];
  const std::size_t count = call.inputs.size();
  CHECK(count <= most_inputs);
  const auto is_longer = [&](const Array& x) { return numel(x.shape) > numel(output.shape); };
  if (count == 1 && is_longer(call.inputs[0]))
    return reduce(launch, "accumulate", Identity{}, call.inputs[0].shape, {&call.inputs[0]},
                  output);
  const Array absent;
  std::array<Array, most_inputs> sums;
  std::array<const Array*, most_inputs> inputs;
  inputs.fill(&absent);
  for (std::size_t i = 0; i < count; ++i) {
    const Array& x = call.inputs[i];
    inputs[i] = &x;
    if (!is_longer(x)) continue;
    sums[i] = array_at(scratch(launch, numel(output.shape) * size_of(DType::Float32), i),
                       DType::Float32, dense(output.shape));
    reduce(launch, "accumulate", Identity{}, x.shape, {&x}, sums[i], 4 + i);
    inputs[i] = &sums[i];
  }
  count <= 1   ? add_up<1>(inputs, output, launch)
  : count == 2 ? add_up<2>(inputs, output, launch)
               : add_up<4>(inputs, output, launch);
}

void subtract(const Call& call, Launch& launch) {
  pointwise(launch, "subtract", PerElement<SubtractFunction>{},
            {&call.inputs[0], &call.inputs[1], &call.outputs[0]});
}

}  // namespace tidemark::cuda
