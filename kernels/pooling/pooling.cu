// Mean pooling as a reduction; max pooling by one kernel over all planes each way.
#include "kernels/pooling/pooling.cuh"
#include "kernels/pooling/pooling.h"

namespace tidemark::cuda {
namespace {

/// y [b, c] as [b, 1, …, c], which spreads over x.
Array spread_means(const Array& y, const Shape& x) {
  std::array<std::int64_t, Shape::max_rank> dims;
  dims.fill(1);
  dims[0] = x[0], dims[x.rank() - 1] = x.back();
  Array spread{y.data, y.dtype, Shape(std::span<const std::int64_t>(dims).first(x.rank())), {}};
  spread.strides[0] = y.strides[0];
  spread.strides[x.rank() - 1] = y.strides[y.shape.rank() - 1];
  return spread;
}

MeanTerm mean_of(const Shape& x) {
  return {static_cast<float>(x[0] * x.back()) / static_cast<float>(numel(x))};
}

PoolGeometry geometry(const Settings& settings, const Shape& x, const Shape& y) {
  return {x[2], x[3], y[2], y[3], settings.window, settings.stride, settings.padding};
}

PlaneStrides inside(const Array& array) { return {array.strides[2], array.strides[3]}; }

/// Planes [n, c] of three arrays.
Walk<3> planes_of(const Array& a, const Array& b, const Array& c) {
  Axes<3> axes;
  for (std::size_t i = 0; i < 2; ++i)
    axes.add(a.shape[i], {a.strides[i], b.strides[i], c.strides[i]});
  return Walk<3>(merged(axes, 0), 1);
}

}  // namespace

void mean_pool_forward(const Call& call, Launch& launch) {
  const Array& x = call.inputs[0];
  reduce(launch, "mean_pool", mean_of(x.shape), x.shape, {&x},
         spread_means(call.outputs[0], x.shape));
}

void mean_pool_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  const Array spread = spread_means(dy, dx.shape);
  pointwise(launch, "mean_pool backward", PerElement<MeanTerm>{mean_of(dx.shape)}, {&spread, &dx});
}

void max_pool_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const Array places = call.outputs.size() > 1 && call.outputs[1]
                           ? call.outputs[1]
                           : Array{nullptr, DType::Int64, y.shape, y.strides};
  if (numel(y.shape) == 0) return;
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "max_pool", max_pool_forward_kernel<T>, dim3(blocks_for(launch, numel(y.shape))),
          dim3(usual_threads), 0, reader<T>(x), writer<T>(y), elements<std::int64_t>(places),
          geometry(call.settings, x.shape, y.shape), inside(x), inside(y), inside(places),
          planes_of(x, y, places));
  });
}

void max_pool_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_outputs[0], &places = call.outputs[1], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  with_dtype_of(std::array{&dy, &dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "max_pool backward", max_pool_backward_kernel<T>,
          dim3(blocks_for(launch, numel(dx.shape))), dim3(usual_threads), 0, reader<T>(dy),
          writer<T>(dx), elements<const std::int64_t>(places),
          geometry(call.settings, dx.shape, dy.shape), inside(dx), inside(dy), inside(places),
          planes_of(dx, dy, places));
  });
}

}  // namespace tidemark::cuda
