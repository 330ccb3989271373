// Launches of conv1d.cuh; see conv1d.h.
#include "kernels/conv1d/conv1d.cuh"
#include "kernels/conv1d/conv1d.h"

namespace tidemark::cuda {
namespace {

LineGeometry line_geometry(const Call& call, const Array& x, const Array& weight, const Array& y) {
  LineGeometry g{x.shape[0],
                 x.shape[1],
                 weight.shape[0],
                 x.shape[2],
                 y.shape[2],
                 weight.shape[2],
                 call.settings.stride,
                 call.settings.padding,
                 {},
                 {},
                 {}};
  for (std::size_t i = 0; i < 3; ++i)
    g.x[i] = x.strides[i], g.w[i] = weight.strides[i], g.y[i] = y.strides[i];
  return g;
}

template <typename Arrays, typename Run>
void with_lines(Launch& launch, const Arrays& arrays, const Array& made, const Run& run) {
  const dim3 blocks(blocks_for(launch, numel(made.shape))), threads(usual_threads);
  with_dtype_of(arrays, [&](auto tag) { run(tag, blocks, threads); });
}

}  // namespace

void conv1d_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &weight = call.inputs[1], &y = call.outputs[0];
  const Array bias = call.inputs.size() > 2 ? call.inputs[2] : Array{};
  with_lines(launch, std::array{&x, &weight, &y}, y, [&](auto tag, dim3 blocks, dim3 threads) {
    using T = typename decltype(tag)::type;
    start(launch, "conv1d", conv1d_kernel<T>, blocks, threads, 0, reader<T>(x), reader<T>(weight),
          reader<AnyFloat>(bias), bias.strides[0], writer<T>(y), line_geometry(call, x, weight, y));
  });
}

void conv1d_backward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &weight = call.inputs[1], &dy = call.d_outputs[0];
  if (!dy) {
    for (const Array& gradient : call.d_inputs)
      if (gradient) fill_with(launch, gradient, 0);
    return;
  }
  if (const Array& dx = call.d_inputs[0])
    with_lines(launch, std::array{&dy, &weight, &dx}, dx, [&](auto tag, dim3 blocks, dim3 threads) {
      using T = typename decltype(tag)::type;
      start(launch, "conv1d backward", conv1d_dx_kernel<T>, blocks, threads, 0, reader<T>(dy),
            reader<T>(weight), writer<T>(dx), line_geometry(call, dx, weight, dy));
    });
  if (const Array& dw = call.d_inputs[1])
    with_lines(launch, std::array{&dy, &x, &dw}, dw, [&](auto tag, dim3 blocks, dim3 threads) {
      using T = typename decltype(tag)::type;
      start(launch, "conv1d backward", conv1d_dw_kernel<T>, blocks, threads, 0, reader<T>(dy),
            reader<T>(x), writer<T>(dw), line_geometry(call, x, dw, dy));
    });
  if (call.d_inputs.size() < 3 || !call.d_inputs[2]) return;
  Array sums = call.d_inputs[2];
  sums.shape = Shape{sums.shape[0], 1}, sums.strides = {call.d_inputs[2].strides[0], 0};
  summed_to(launch, "conv1d backward", Identity{}, dy.shape, {&dy}, sums);
}

}  // namespace tidemark::cuda
