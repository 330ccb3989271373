// Kernels that compute each element of their outputs from the same element of their inputs: one
// kernel for all of them. Every element is read once and written once, in vectors of 16 bytes, so
// that memory is the only limit.
#pragma once

#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

/// Function: `inputs` and `outputs`, and operator()(const float (&in)[…], float (&out)[…]).
template <typename Function>
inline constexpr int operands_of = Function::inputs + Function::outputs;

template <typename Function, typename T>
struct PointwiseArguments {
  Reader<T> in[Function::inputs > 0 ? Function::inputs : 1];
  Writer<T> out[Function::outputs];
  Walk<operands_of<Function>> walk;
};

template <typename Function, typename T, int V>
__global__ void pointwise_kernel(Function function, PointwiseArguments<Function, T> arguments) {
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  const auto& walk = arguments.walk;
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    float in[inputs > 0 ? inputs : 1][V], out[outputs][V];
    for (int k = 0; k < inputs; ++k)
      load<V>(arguments.in[k], at.offset[k], walk.inner_stride[k], at.valid, in[k]);
    for (int e = 0; e < V; ++e) {
      float x[inputs > 0 ? inputs : 1], y[outputs];
      for (int k = 0; k < inputs; ++k) x[k] = in[k][e];
      function(x, y);
      for (int k = 0; k < outputs; ++k) out[k][e] = y[k];
    }
    for (int k = 0; k < outputs; ++k)
      store<V>(arguments.out[k], at.offset[inputs + k], walk.inner_stride[inputs + k], at.valid,
               out[k]);
  }
}

/// Inputs, then outputs; absent inputs are zeros, absent outputs are not written. The first output
/// that is present says the shape; inputs spread over it.
template <typename Function>
void pointwise(Launch& launch, const char* name, const Function& function,
               std::array<const Array*, static_cast<std::size_t>(operands_of<Function>)> operands) {
  constexpr int inputs = Function::inputs, count = operands_of<Function>;
  int leader = inputs;
  while (leader + 1 < count && !*operands[static_cast<std::size_t>(leader)]) ++leader;
  const Array& output = *operands[static_cast<std::size_t>(leader)];
  if (!output || numel(output.shape) == 0) return;

  // What is absent has neither strides nor a dtype that matters.
  Array absent = output;
  absent.data = nullptr;
  for (const Array*& operand : operands)
    if (!*operand) operand = &absent;

  const Axes<count> axes = merged(axes_over<count>(output.shape, operands), leader);
  with_dtype_of(operands, [&](auto tag) {
    using T = typename decltype(tag)::type;
    PointwiseArguments<Function, T> arguments;
    for (int k = 0; k < inputs; ++k)
      arguments.in[k] = reader<T>(*operands[static_cast<std::size_t>(k)]);
    for (int k = inputs; k < count; ++k)
      arguments.out[k - inputs] = writer<T>(*operands[static_cast<std::size_t>(k)]);
    const bool vectors = is_vectorizable<count>(axes, operands, vector_size<T>);
    arguments.walk = Walk<count>(axes, vectors ? vector_size<T> : 1);
    const dim3 blocks(blocks_for(launch, arguments.walk.vectors));
    const auto kernel =
        vectors ? pointwise_kernel<Function, T, vector_size<T>> : pointwise_kernel<Function, T, 1>;
    start(launch, name, kernel, blocks, dim3(usual_threads), 0, function, arguments);
  });
}

}  // namespace tidemark::cuda
