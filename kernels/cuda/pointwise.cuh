// Kernels that compute each element of their outputs from the same element of their inputs: one
// kernel for all of them. Every element is read once and written once, in vectors of 16 bytes, so
// that memory is the only limit.
#pragma once

#include "kernels/cuda/own_group.cuh"

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

template <typename Function, typename T, int V, typename Watcher>
__device__ inline void walk_pointwise(const Function& function,
                                      const PointwiseArguments<Function, T>& arguments,
                                      Watcher (&watch)[Function::outputs]) {
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  const auto& walk = arguments.walk;
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    float in[inputs > 0 ? inputs : 1][V], out[outputs][V];
    TIDEMARK_UNROLL
    for (int k = 0; k < inputs; ++k)
      load<V>(arguments.in[k], at.offset[k], walk.inner_stride[k], at.valid, in[k]);
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) {
      float x[inputs > 0 ? inputs : 1], y[outputs];
      TIDEMARK_UNROLL
      for (int k = 0; k < inputs; ++k) x[k] = in[k][e];
      function(x, y);
      TIDEMARK_UNROLL
      for (int k = 0; k < outputs; ++k) out[k][e] = y[k];
    }
    TIDEMARK_UNROLL
    for (int k = 0; k < outputs; ++k) {
      const std::int64_t offset = at.offset[inputs + k], stride = walk.inner_stride[inputs + k];
      store_unwatched<V>(arguments.out[k], offset, stride, at.valid, out[k]);
      watch[k].note(offset, stride, at.valid, out[k]);
    }
  }
  TIDEMARK_UNROLL
  for (int k = 0; k < outputs; ++k) watch[k].finish();
}

template <typename Function, typename T, int V>
__global__ void pointwise_kernel(Function function, PointwiseArguments<Function, T> arguments) {
  NoWatch nobody[Function::outputs];
  walk_pointwise<Function, T, V>(function, arguments, nobody);
}

/// Of each output its groups, if it has any.
template <typename Function>
struct WatchedOutputs {
  DeviceGroups of[Function::outputs];
};

template <typename Function, typename T, int V>
__global__ void watched_pointwise_kernel(Function function,
                                         PointwiseArguments<Function, T> arguments,
                                         WatchedOutputs<Function> groups) {
  __shared__ BlockExtremes of_block[Function::outputs];
  if constexpr (Function::outputs == 1) {
    Watch watch[] = {Watch(groups.of[0], of_block[0])};
    walk_pointwise<Function, T, V>(function, arguments, watch);
  } else {
    static_assert(Function::outputs == 4, "watches are made one by one");
    Watch watch[] = {Watch(groups.of[0], of_block[0]), Watch(groups.of[1], of_block[1]),
                     Watch(groups.of[2], of_block[2]), Watch(groups.of[3], of_block[3])};
    walk_pointwise<Function, T, V>(function, arguments, watch);
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

template <typename Function, typename T, int V, int inputs>
__device__ inline void apply_to(const Function& function, const Pack<T, V> (&in)[inputs],
                                float (&out)[Function::outputs][V]) {
  TIDEMARK_UNROLL
  for (int e = 0; e < V; ++e) {
    float x[inputs], y[Function::outputs];
    TIDEMARK_UNROLL
    for (int k = 0; k < inputs; ++k) x[k] = value_in(in[k], e);
    function(x, y);
    TIDEMARK_UNROLL
    for (int k = 0; k < Function::outputs; ++k) out[k][e] = y[k];
  }
}

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
      if (i < vectors) TIDEMARK_UNROLL
      for (int k = 0; k < inputs; ++k)
        in[u][k] = reinterpret_cast<const Pack<T, V>*>(arguments.in[k])[i];
    }
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) break;
      float out[outputs][V];
      apply_to(function, in[u], out);
      TIDEMARK_UNROLL
      for (int k = 0; k < outputs; ++k)
        reinterpret_cast<Pack<T, V>*>(arguments.out[k])[i] = packed<T>(out[k]);
    }
  }
}

/// The same of an output that is watched: one vector at a time, as what watches takes registers,
/// too.
template <typename Function, typename T, int V>
__global__ void __launch_bounds__(watching_threads, watching_resident)
    dense_watched_kernel(Function function, DenseArguments<Function, T> arguments,
                         DeviceGroups groups) {
  constexpr int inputs = Function::inputs;
  __shared__ BlockExtremes of_block;
  Watch watch(groups, of_block);
  if (thread_of_grid() < arguments.vectors) watch.stay_at(thread_of_grid() * V);
  for (std::int64_t i = thread_of_grid(); i < arguments.vectors; i += threads_of_grid()) {
    Pack<T, V> in[inputs];
    TIDEMARK_UNROLL
    for (int k = 0; k < inputs; ++k)
      in[k] = reinterpret_cast<const Pack<T, V>*>(arguments.in[k])[i];
    float out[1][V];
    apply_to(function, in, out);
    reinterpret_cast<Pack<T, V>*>(arguments.out[0])[i] = packed<T>(out[0]);
    watch.note_there(i * V, out[0]);
  }
  watch.finish();
}

/// The same of two inputs, the second of them codes.
template <typename Function, typename T, int V>
__global__ void dense_coded_kernel(Function function, const T* from, DeviceGroups codes, T* to,
                                   std::int64_t vectors) {
  constexpr int each = 2;
  if (thread_of_grid() >= vectors) return;
  const Decoder decoder(codes.range_at(thread_of_grid() * V), 8);
  const std::uint8_t* const second = codes.codes + codes.first;
  Pack<T, V> in[each];
  Pack<std::uint8_t, V> coded[each];
  for_own_vectors<each>(
      vectors,
      [&](std::int64_t i, int u) {
        in[u] = reinterpret_cast<const Pack<T, V>*>(from)[i];
        coded[u] = reinterpret_cast<const Pack<std::uint8_t, V>*>(second)[i];
      },
      [&](std::int64_t i, int u) {
        float out[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) {
          const float x[2] = {value_in(in[u], e), decoder(number_in(coded[u], e))};
          float y[1];
          function(x, y);
          out[e] = y[0];
        }
        reinterpret_cast<Pack<T, V>*>(to)[i] = packed<T>(out);
      });
}

/// No vectors where an operand spreads, is absent or has gaps or an odd end.
template <typename Function, typename T>
DenseArguments<Function, T> dense_arguments(
    const Axes<operands_of<Function>>& axes,
    const std::array<const Array*, operands_of<Function>>& operands) {
  constexpr int V = vector_size<T>, inputs = Function::inputs;
  DenseArguments<Function, T> arguments{};
  if (axes.rank != 1 || axes.extent[0] % V != 0) return arguments;
  for (int k = 0; k < operands_of<Function>; ++k) {
    const Array& operand = *operands[static_cast<std::size_t>(k)];
    if (!operand || axes.stride[0][k] != 1) return arguments;
    if (k < inputs)
      arguments.in[k] = elements<const T>(operand);
    else
      arguments.out[k - inputs] = elements<T>(operand);
  }
  arguments.vectors = axes.extent[0] / V;
  return arguments;
}

/// True if it was enough.
template <typename Function, typename T>
bool run_dense(Launch& launch, const char* name, const Function& function,
               const Axes<operands_of<Function>>& axes,
               const std::array<const Array*, operands_of<Function>>& operands) {
  constexpr int V = vector_size<T>, each = dense_vectors<Function>;
  const DenseArguments<Function, T> arguments = dense_arguments<Function, T>(axes, operands);
  if (arguments.vectors == 0) return false;
  start(launch, name, dense_pointwise_kernel<Function, T, V>,
        dim3(blocks_for(launch, (arguments.vectors + each - 1) / each)), dim3(usual_threads), 0,
        function, arguments);
  return true;
}

/// Of kernels whose threads stay in one group: on an H200 eight times what is resident at once was
/// best or within 3 % of it.
inline std::int64_t own_group_wanted(const Launch& launch) {
  return std::int64_t{launch.processors} * 64;
}

/// Elements per thread. Many operands of mixed dtypes go one by one: in vectors the kernel of eight
/// takes the compiler longer than any other, and it runs once per step.
template <typename Function, typename T>
inline constexpr int pointwise_vector =
    std::is_same_v<T, AnyFloat>&& Function::inputs > 5 ? 1 : vector_size<T>;

template <typename Function>
using Operands = std::array<const Array*, static_cast<std::size_t>(operands_of<Function>)>;

/// Calls run(tag of the dtype, axes, operands, whether vectors of them can be read).
template <typename Function, typename Run>
void with_axes(Operands<Function> operands, const Run& run) {
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
    run(tag, axes, operands, is_vectorizable<count>(axes, operands, pointwise_vector<Function, T>));
  });
}

template <typename Function, typename T>
PointwiseArguments<Function, T> pointwise_arguments(const Axes<operands_of<Function>>& axes,
                                                    const Operands<Function>& operands,
                                                    bool has_vectors) {
  constexpr int inputs = Function::inputs;
  PointwiseArguments<Function, T> arguments;
  for (int k = 0; k < inputs; ++k)
    arguments.in[k] = reader<T>(*operands[static_cast<std::size_t>(k)]);
  for (int k = 0; k < Function::outputs; ++k)
    arguments.out[k] = writer<T>(*operands[static_cast<std::size_t>(inputs + k)]);
  arguments.walk =
      Walk<operands_of<Function>>(axes, has_vectors ? pointwise_vector<Function, T> : 1);
  return arguments;
}

/// True if it was enough: false where the second input has no codes of a byte, something lies in
/// pieces, or a vector has elements of two groups.
template <typename Function>
bool run_coded(Launch& launch, const char* name, const Function& function,
               const Operands<Function>& given) {
  const Array &from = *given[0], &codes = *given[1], &to = *given[2];
  if (!codes.groups || !from || !to || from.groups || from.dtype != to.dtype) return false;
  bool is_done = false;
  with_axes<Function>(given, [&](auto, const auto& axes, const auto&, bool) {
    for (int k = 0; k < 3; ++k)
      if (axes.rank != 1 || axes.stride[0][k] != 1) return;
    with_dtype_of(std::array{&from}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      constexpr int V = vector_size<T>;
      if constexpr (!std::is_same_v<T, AnyFloat>) {
        if (!is_vectorizable<3>(axes, {&from, &codes, &to}, V) || axes.extent[0] % V != 0 ||
            !has_groups_of_vectors(codes, V))
          return;
        const std::int64_t vectors = axes.extent[0] / V;
        start(launch, name, dense_coded_kernel<Function, T, V>,
              dim3(own_group_blocks(own_group_wanted(launch), vectors, V, codes.groups)),
              dim3(usual_threads), 0, function, elements<const T>(from), DeviceGroups(codes),
              elements<T>(to), vectors);
        is_done = true;
      }
    });
  });
  return is_done;
}

/// Inputs, then outputs; absent inputs are zeros, absent outputs are not written. The first output
/// that is present says the shape; inputs spread over it. Nobody watches the outputs.
template <typename Function>
void pointwise(Launch& launch, const char* name, const Function& function,
               const Operands<Function>& given) {
  for (std::size_t k = Function::inputs; k < given.size(); ++k) CHECK(!given[k]->groups);
  if constexpr (Function::inputs == 2 && Function::outputs == 1)
    if (run_coded(launch, name, function, given)) return;
  with_axes<Function>(given, [&](auto tag, const auto& axes, const auto& operands, bool vectors) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat>)
      if (vectors && run_dense<Function, T>(launch, name, function, axes, operands)) return;
    const auto arguments = pointwise_arguments<Function, T>(axes, operands, vectors);
    const auto kernel = vectors ? pointwise_kernel<Function, T, pointwise_vector<Function, T>>
                                : pointwise_kernel<Function, T, 1>;
    start(launch, name, kernel, dim3(blocks_for(launch, arguments.walk.vectors)),
          dim3(usual_threads), 0, function, arguments);
  });
}

/// As pointwise(), and outputs with groups are watched: their minimum and maximum are noted.
template <typename Function>
void watched_pointwise(Launch& launch, const char* name, const Function& function,
                       const Operands<Function>& given) {
  constexpr std::size_t inputs = Function::inputs, outputs = Function::outputs;
  Operands<Function> operands = given;
  std::array<Array, outputs> written;  // what is written is of one dtype, watched or not
  WatchedOutputs<Function> watched;
  Groups groups;
  for (std::size_t k = 0; k < outputs; ++k) {
    written[k] = *given[inputs + k];
    watched.of[k] = DeviceGroups(written[k]);
    if (written[k].groups) groups = written[k].groups;
    written[k].groups = {};
    operands[inputs + k] = &written[k];
  }
  if (!groups) return pointwise(launch, name, function, operands);
  with_axes<Function>(operands, [&](auto tag, const auto& axes, const auto& found, bool vectors) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat> && outputs == 1) {
      constexpr int V = vector_size<T>;
      const auto arguments = dense_arguments<Function, T>(axes, found);
      if (vectors && arguments.vectors > 0 && has_groups_of_vectors(*given[inputs], V))
        return start_watching(launch, name, dense_watched_kernel<Function, T, V>, arguments.vectors,
                              V, groups, function, arguments, watched.of[0]);
    }
    const auto arguments = pointwise_arguments<Function, T>(axes, found, vectors);
    const int vector = vectors ? vector_size<T> : 1;
    const auto kernel = vectors ? watched_pointwise_kernel<Function, T, vector_size<T>>
                                : watched_pointwise_kernel<Function, T, 1>;
    const std::int64_t at_once =
        std::int64_t{launch.processors} * resident_blocks(kernel, usual_threads, 0);
    start(launch, name, kernel,
          dim3(watching_blocks(at_once, arguments.walk.vectors, vector, groups)),
          dim3(usual_threads), 0, function, arguments, watched);
  });
}

}  // namespace tidemark::cuda
