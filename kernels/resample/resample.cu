// Launches of resample.cuh; see resample.h.
#include "kernels/resample/resample.cuh"
#include "kernels/resample/resample.h"

namespace tidemark::cuda {
namespace {

/// [n, c, 1, 1]: where each plane begins.
Array beginnings(const Array& planes) {
  Array first = planes;
  first.shape = Shape{planes.shape[0], planes.shape[1], 1, 1};
  return first;
}

ResampleGeometry resample_geometry(const Call& call, const Array& x, const Array& y,
                                   const Array& read) {
  return {resampling_of(call.formula),
          x.shape[2],
          x.shape[3],
          y.shape[2],
          y.shape[3],
          read.strides[2],
          read.strides[3]};
}

}  // namespace

void resample_forward(const Call& call, Launch& launch) {
  const Array x = as_planes(call.inputs[0]), y = as_planes(call.outputs[0]);
  const Array planes = beginnings(x);
  const Walk<2> walk = walk_in_order<2>(y.shape, {&y, &planes});
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "resample", resample_kernel<T>, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, reader<T>(x), writer<T>(y), walk,
          resample_geometry(call, x, y, x));
  });
}

void resample_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  const Array dx = as_planes(call.d_inputs[0]), dy = as_planes(call.d_outputs[0]);
  const Array planes = beginnings(dy);
  const Walk<2> walk = walk_in_order<2>(dx.shape, {&dx, &planes});
  with_dtype_of(std::array{&dx, &dy}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "resample backward", resample_backward_kernel<T>,
          dim3(blocks_for(launch, walk.vectors)), dim3(usual_threads), 0, reader<T>(dy),
          writer<T>(dx), walk, resample_geometry(call, dx, dy, dy));
  });
}

}  // namespace tidemark::cuda
