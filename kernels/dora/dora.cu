// The product by the library, norms by a reduction; see dora.h.
#include "kernels/cuda/gradients.cuh"
#include "kernels/dora/dora.h"
#include "kernels/linear/linear.h"

namespace tidemark::cuda {
namespace {

/// {W, B·A}
struct SquareOfSum {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&x)[2]) const {
    const float sum = x[0] + x[1];
    return sum * sum;
  }
};

struct RootFunction {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return sqrtf(x[0]); }
};

Array turned(const Array& x) {
  return {x.data, x.dtype, Shape{x.shape[1], x.shape[0]}, {x.strides[1], x.strides[0]}};
}

}  // namespace

void dora_norm_forward(const Call& call, Launch& launch) {
  const Array &weight = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2];
  const Array &norm = call.outputs[0], &eye = call.outputs[1], &low = call.outputs[2];
  const Array& delta = call.outputs[3];
  fill_with(launch, eye, 0);
  const Array diagonal{eye.data, eye.dtype, Shape{eye.shape[0]}, {eye.strides[0] + eye.strides[1]}};
  fill_with(launch, diagonal, 1);
  const Array columns = turned(a);
  pointwise(launch, "dora", PerElement<Identity>{}, {&columns, &low});
  Call product;
  product.kind = OpKind::MatMul, product.inputs = {b, a}, product.outputs = {delta};
  matmul_forward(product, launch);
  const std::int64_t out = norm.shape[0];
  const Array sums =
      array_at(scratch(launch, out * size_of(DType::Float32), 1), DType::Float32, dense({out, 1}));
  reduce(launch, "dora", SquareOfSum{}, weight.shape, {&weight, &delta}, sums);
  const Array flat = array_at(sums.data, DType::Float32, dense({out}));
  pointwise(launch, "dora", PerElement<RootFunction>{}, {&flat, &norm});
}

}  // namespace tidemark::cuda
