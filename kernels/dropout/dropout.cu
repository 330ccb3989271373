// Draws the mask in the kernel that scales; DropPath multiplies each sample by its factor.
#include "kernels/dropout/dropout.cuh"
#include "kernels/dropout/dropout.h"

namespace tidemark::cuda {
namespace {

float scale_of(double probability) {
  return probability < 1 ? static_cast<float>(1 / (1 - probability)) : 0.0f;
}

// Comparing with p in fp32 is the same for every p as in exact numbers, if p is rounded down to the
// 24 bits that the random numbers have.
float threshold_of(double probability) {
  return static_cast<float>(std::floor(probability * 0x1p24)) * 0x1p-24f;
}

template <bool is_backward>
void drop(const Call& call, Launch& launch, const char* name, const Array& from, const Array& to) {
  if (numel(to.shape) == 0) return;
  Array mask = call.outputs[1];
  if (!mask) mask.strides = dense(to.shape).strides;
  const Array numbers = numbering(to.shape);
  const std::array<const Array*, 4> arrays = {&from, &to, &mask, &numbers};
  const Axes<4> axes = merged(axes_over<4>(to.shape, arrays), 3);
  with_dtype_of(std::array{&from, &to}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const bool vectors = is_vectorizable<4>(axes, arrays, V);
    const Walk<4> walk(axes, vectors ? V : 1);
    const auto kernel =
        vectors ? dropout_kernel<is_backward, T, V> : dropout_kernel<is_backward, T, 1>;
    start(launch, name, kernel, dim3(blocks_for(launch, walk.vectors)), dim3(usual_threads), 0,
          reader<T>(from), writer<T>(to), elements<std::uint8_t>(mask), walk,
          random_tensor(launch.state, call.key), threshold_of(call.settings.probability),
          scale_of(call.settings.probability));
  });
}

/// The array with its first axis divided into samples and their entries, which lie in a row.
Array by_sample(const Array& array, std::int64_t samples) {
  const std::size_t rank = array.shape.rank();
  const std::int64_t each = array.shape[0] / samples;
  if (each == 1) return array;
  CHECK(rank < Shape::max_rank);
  std::array<std::int64_t, Shape::max_rank> dims{};
  Array result = array;
  dims[0] = samples, dims[1] = each;
  result.strides[0] = each * array.strides[0];
  for (std::size_t i = 0; i < rank; ++i) {
    if (i > 0) dims[i + 1] = array.shape[i];
    result.strides[i + 1] = array.strides[i];
  }
  result.shape = Shape(std::span<const std::int64_t>(dims).first(rank + 1));
  return result;
}

void times_mask(Launch& launch, const char* name, const Array& from, const Array& mask,
                const Array& to) {
  const std::int64_t samples = numel(mask.shape);
  const Array x = by_sample(from, samples), y = by_sample(to, samples);
  std::array<std::int64_t, Shape::max_rank> dims;
  dims.fill(1);
  dims[0] = samples;
  const Shape shape(std::span<const std::int64_t>(dims).first(y.shape.rank()));
  const Array factors{mask.data, mask.dtype, shape, {1}};
  pointwise(launch, name, PerElement<TimesMask>{}, {&x, &factors, &y});
}

}  // namespace

void dropout_forward(const Call& call, Launch& launch) {
  drop<false>(call, launch, "dropout", call.inputs[0], call.outputs[0]);
}

void dropout_backward(const Call& call, Launch& launch) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  if (!call.d_outputs[0]) return fill_with(launch, dx, 0);
  drop<true>(call, launch, "dropout backward", call.d_outputs[0], dx);
}

void drop_path_forward(const Call& call, Launch& launch) {
  const Array& mask = call.outputs[1];
  const std::int64_t samples = numel(mask.shape);
  with_dtype_of(std::array{&mask}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "drop_path mask", sample_mask_kernel<T>, dim3(blocks_for(launch, samples)),
          dim3(usual_threads), 0, writer<T>(mask), samples, random_tensor(launch.state, call.key),
          threshold_of(call.settings.probability), scale_of(call.settings.probability));
  });
  times_mask(launch, "drop_path", call.inputs[0], mask, call.outputs[0]);
}

void drop_path_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  times_mask(launch, "drop_path backward", call.d_outputs[0], call.outputs[1], call.d_inputs[0]);
}

}  // namespace tidemark::cuda
