// Launches that most files share, compiled once: constants, copies and plain sums.
#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {
namespace {

struct Constant {
  static constexpr int inputs = 0, outputs = 1;
  float value;
  __device__ void operator()(const float (&)[1], float (&y)[1]) const { y[0] = value; }
};

/// Of a block that joins parts.
constexpr unsigned join_rows = 32;

/// Joins the parts and rounds. Lanes have neighbouring results, thread rows
/// share the parts: one thread alone would wait for each part in turn.
template <typename T>
__global__ void __launch_bounds__(column_lanes* join_rows)
    join_parts_kernel(const float* partial, std::int64_t parts, std::int64_t results, Walk<2> walk,
                      Writer<T> out) {
  __shared__ float sums[join_rows][column_lanes];
  const std::int64_t i = std::int64_t{blockIdx.x} * column_lanes + threadIdx.x;
  Place<2> at{};
  float sum = 0;
  if (i < walk.vectors) {
    at = walk.template place<1>(i);
    for (std::int64_t part = threadIdx.y; part < parts; part += blockDim.y)
      sum += partial[part * results + at.offset[0]];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || i >= walk.vectors) return;
  for (unsigned row = 1; row < blockDim.y; ++row) sum += sums[row][threadIdx.x];
  store_one(out, at.offset[1], sum);
}

}  // namespace

void fill_with(Launch& launch, const Array& array, float value) {
  pointwise(launch, "fill", Constant{value}, {&array});
}

void join_parts(Launch& launch, const char* name, const float* partial, std::int64_t parts,
                const Array& result) {
  const Array numbers = numbering(result.shape);
  const Walk<2> walk(merged(axes_over<2>(result.shape, {&numbers, &result}), 1), 1);
  const auto rows = static_cast<unsigned>(std::clamp<std::int64_t>(parts, 1, join_rows));
  with_dtype_of(std::array{&result}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, name, join_parts_kernel<T>,
          dim3(static_cast<unsigned>((walk.vectors + column_lanes - 1) / column_lanes)),
          dim3(column_lanes, rows), 0, partial, parts, numel(result.shape), walk,
          writer<T>(result));
  });
}

template void pointwise(Launch& launch, const char* name, const PerElement<Identity>& function,
                        const Operands<PerElement<Identity>>& given);
template void reduce(Launch& launch, const char* name, const Identity& function, const Shape& large,
                     const std::array<const Array*, 1>& inputs, const Array& result,
                     std::size_t slot);

}  // namespace tidemark::cuda
