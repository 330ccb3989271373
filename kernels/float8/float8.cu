// Launches of float8.cuh; see float8.h.
#include <bit>

#include "kernels/float8/float8.cuh"
#include "kernels/float8/float8.h"

namespace tidemark::cuda {
namespace {

bool is_aligned(const Array& array, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(array.data) % bytes == 0;
}

/// How value and codes are walked: in vectors, where they begin at one and no group ends inside
/// one.
struct Float8Walk {
  Float8Walk(const Array& value, const Array& codes, const Array& magnitudes, int vector)
      : groups(numel(magnitudes.shape)) {
    CHECK(is_dense(value.layout()) && is_dense(codes.layout()) && is_dense(magnitudes.layout()));
    CHECK(numel(codes.shape) == numel(value.shape) && magnitudes.dtype == DType::Float32);
    CHECK(groups > 0 && numel(value.shape) % groups == 0);
    const std::int64_t of_group = numel(value.shape) / groups;
    has_vectors = of_group % vector == 0 && is_aligned(value, 16) && is_aligned(codes, 8);
    stretch = of_group / (has_vectors ? vector : 1);
    vectors = stretch * groups;
  }
  std::int64_t groups, stretch = 0, vectors = 0;
  bool has_vectors = false;
};

/// As many threads per group as have something to read, up to a warp.
unsigned lanes_of(std::int64_t stretch) {
  const auto most = static_cast<unsigned>(std::clamp<std::int64_t>(stretch, 1, warp_size));
  return std::bit_floor(most);
}

template <typename T, int V>
void quantize_in_vectors(const Call& call, Launch& launch, const Float8Walk& walk) {
  const T* const value = elements<const T>(call.inputs[0]);
  auto* const codes = elements<Float8>(call.outputs[0]);
  auto* const magnitudes = elements<float>(call.outputs[1]);
  const dim3 threads(usual_threads);
  if (walk.groups > 1) {
    const unsigned lanes = lanes_of(walk.stretch);
    return start(launch, "float8 groups", float8_groups_kernel<T, V>,
                 dim3(blocks_for(launch, walk.groups * lanes)), threads, 0, value, codes,
                 magnitudes, walk.groups, walk.stretch, lanes);
  }
  start(launch, "float8 clear", float8_clear_kernel, dim3(1), dim3(1), 0, magnitudes);
  const dim3 blocks(blocks_for(launch, walk.vectors));
  start(launch, "float8 magnitude", float8_magnitude_kernel<T, V>, blocks, threads, 0, value,
        walk.vectors, magnitudes);
  start(launch, "float8 codes", float8_codes_kernel<T, V>, blocks, threads, 0, value, codes,
        walk.vectors, static_cast<const float*>(magnitudes));
}

/// Calls run(Tag of the dtype, its vector).
template <typename Run>
void with_type_of(const Array& value, const Run& run) {
  with_dtype_of(std::array{&value}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat>) run(tag);
  });
}

}  // namespace

void quantize_to_float8(const Call& call, Launch& launch) {
  const Array &value = call.inputs[0], &codes = call.outputs[0], &magnitudes = call.outputs[1];
  if (numel(magnitudes.shape) == 0) return;
  with_type_of(value, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const Float8Walk walk(value, codes, magnitudes, V);
    walk.has_vectors ? quantize_in_vectors<T, V>(call, launch, walk)
                     : quantize_in_vectors<T, 1>(call, launch, walk);
  });
}

void dequantize_from_float8(const Call& call, Launch& launch) {
  const Array &codes = call.inputs[0], &magnitudes = call.inputs[1], &value = call.outputs[0];
  if (numel(value.shape) == 0) return;
  with_type_of(value, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const Float8Walk walk(value, codes, magnitudes, V);
    start(launch, "float8 values",
          walk.has_vectors ? float8_values_kernel<T, V> : float8_values_kernel<T, 1>,
          dim3(blocks_for(launch, walk.vectors)), dim3(usual_threads), 0,
          elements<const Float8>(codes), elements<const float>(magnitudes), elements<T>(value),
          walk.vectors, Divisor(walk.stretch));
  });
}

}  // namespace tidemark::cuda
