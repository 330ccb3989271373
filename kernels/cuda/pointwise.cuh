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

/// Where all operands are of one dtype and lie in one piece: several loads of each thread are under
/// way before the first one is used. One alone would leave a fast device's memory waiting.
template <typename Function, typename T>
struct DenseArguments {
  const T* in[Function::inputs > 0 ? Function::inputs : 1];
  T* out[Function::outputs];
  std::int64_t vectors;
};

/// Vectors per thread: at least two loads of 16 bytes, 48 KB for the 1536 threads of a
/// multiprocessor at 40 registers each. An H200 needs about 30 KB (4.8 TB/s, some 800 ns, 132 of
/// them); more only makes blocks larger and the last wave of them longer.
template <typename Function>
inline constexpr int dense_vectors = Function::inputs <= 2 ? 2 : 1;

template <typename Function, typename T, int V>
__global__ void dense_pointwise_kernel(Function function, DenseArguments<Function, T> arguments) {
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr int each = dense_vectors<Function>;
  const std::int64_t vectors = arguments.vectors, step = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * each + threadIdx.x;
  for (; first < vectors; first += step * each) {
    Pack<T, V> in[each][inputs > 0 ? inputs : 1];
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i < vectors)
        for (int k = 0; k < inputs; ++k)
          in[u][k] = reinterpret_cast<const Pack<T, V>*>(arguments.in[k])[i];
    }
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) break;
      float out[outputs][V];
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        float x[inputs > 0 ? inputs : 1], y[outputs];
        for (int k = 0; k < inputs; ++k) x[k] = to_fp32(in[u][k].values[e]);
        function(x, y);
        for (int k = 0; k < outputs; ++k) out[k][e] = y[k];
      }
      for (int k = 0; k < outputs; ++k)
        reinterpret_cast<Pack<T, V>*>(arguments.out[k])[i] = packed<T>(out[k]);
    }
  }
}

/// True if it was enough: false where an operand spreads, is absent or has gaps or an odd end.
template <typename Function, typename T>
bool run_dense(Launch& launch, const char* name, const Function& function,
               const Axes<operands_of<Function>>& axes,
               const std::array<const Array*, operands_of<Function>>& operands) {
  constexpr int V = vector_size<T>, inputs = Function::inputs;
  if (axes.rank != 1 || axes.extent[0] % V != 0) return false;
  DenseArguments<Function, T> arguments;
  for (int k = 0; k < operands_of<Function>; ++k) {
    const Array& operand = *operands[static_cast<std::size_t>(k)];
    if (!operand || axes.stride[0][k] != 1) return false;
    if (k < inputs)
      arguments.in[k] = elements<const T>(operand);
    else
      arguments.out[k - inputs] = elements<T>(operand);
  }
  arguments.vectors = axes.extent[0] / V;
  constexpr int each = dense_vectors<Function>;
  start(launch, name, dense_pointwise_kernel<Function, T, V>,
        dim3(blocks_for(launch, (arguments.vectors + each - 1) / each)), dim3(usual_threads), 0,
        function, arguments);
  return true;
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
    const bool vectors = is_vectorizable<count>(axes, operands, vector_size<T>);
    if constexpr (!std::is_same_v<T, AnyFloat>)
      if (vectors && run_dense<Function, T>(launch, name, function, axes, operands)) return;
    PointwiseArguments<Function, T> arguments;
    for (int k = 0; k < inputs; ++k)
      arguments.in[k] = reader<T>(*operands[static_cast<std::size_t>(k)]);
    for (int k = inputs; k < count; ++k)
      arguments.out[k - inputs] = writer<T>(*operands[static_cast<std::size_t>(k)]);
    arguments.walk = Walk<count>(axes, vectors ? vector_size<T> : 1);
    const dim3 blocks(blocks_for(launch, arguments.walk.vectors));
    const auto kernel =
        vectors ? pointwise_kernel<Function, T, vector_size<T>> : pointwise_kernel<Function, T, 1>;
    start(launch, name, kernel, blocks, dim3(usual_threads), 0, function, arguments);
  });
}

}  // namespace tidemark::cuda
