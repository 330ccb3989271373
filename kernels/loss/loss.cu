// One block sums the loss; the backward counts the targets itself if no weight is saved.
#include "kernels/loss/loss.cuh"
#include "kernels/loss/loss.h"

namespace tidemark::cuda {
namespace {

/// The targets with one more axis, which spread over a row's classes.
Array per_row(const Array& targets) {
  std::vector<std::int64_t> dims(targets.shape.dims().begin(), targets.shape.dims().end());
  dims.push_back(1);
  return {targets.data, targets.dtype, Shape(dims), targets.strides};
}

Walk<2> rows_of(const Array& classes, const Array& targets) {
  Axes<2> axes;
  for (std::size_t i = 0; i + 1 < classes.shape.rank(); ++i)
    axes.add(classes.shape[i], {classes.strides[i], targets.strides[i]});
  return Walk<2>(merged(axes, 0), 1);
}

}  // namespace

void nll_loss_forward(const Call& call, Launch& launch) {
  const Array &log_p = call.inputs[0], &targets = call.inputs[1], &loss = call.outputs[0];
  CHECK(targets.dtype == DType::Int64);
  Array weight = loss;
  weight.data = nullptr;
  if (call.outputs.size() > 1 && call.outputs[1]) weight = call.outputs[1];
  with_dtype_of(std::array<const Array*, 3>{&log_p, &loss, &weight}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "nll_loss", nll_forward_kernel<T>, dim3(1), dim3(loss_threads), 0,
          reader<T>(log_p), log_p.strides[log_p.shape.rank() - 1], log_p.shape.back(),
          elements<const std::int64_t>(targets), rows_of(log_p, targets), writer<T>(loss),
          writer<T>(weight));
  });
}

void nll_loss_backward(const Call& call, Launch& launch) {
  const Array &d_log_p = call.d_inputs[0], &d_loss = call.d_outputs[0];
  const Array targets = per_row(call.inputs[1]);
  if (!d_log_p || numel(d_log_p.shape) == 0) return;
  if (!d_loss) return fill_with(launch, d_log_p, 0);
  Array weight = d_loss;
  weight.data = nullptr;
  if (call.outputs.size() > 1 && call.outputs[1]) weight = call.outputs[1];
  float* count = nullptr;
  if (!weight) {
    count = reinterpret_cast<float*>(scratch(launch, sizeof(float)));
    start(launch, "nll_loss count", nll_count_kernel, dim3(1), dim3(loss_threads), 0,
          elements<const std::int64_t>(targets), rows_of(d_log_p, targets), count);
  }
  const Array classes{nullptr, DType::Float32, Shape{d_log_p.shape.back()}, {1}};
  const std::array<const Array*, 3> arrays = {&d_log_p, &targets, &classes};
  const Axes<3> axes = merged(axes_over<3>(d_log_p.shape, arrays), 0);
  with_dtype_of(std::array<const Array*, 3>{&d_log_p, &d_loss, &weight}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const bool vectors = axes.rank > 0 && axes.stride[axes.rank - 1][2] == 1 &&
                         is_vectorizable<3>(axes, {&d_log_p, &classes, &classes}, V);
    const Walk<3> walk(axes, vectors ? V : 1);
    const auto kernel = vectors ? nll_backward_kernel<T, V> : nll_backward_kernel<T, 1>;
    start(launch, "nll_loss backward", kernel, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, writer<T>(d_log_p), elements<const std::int64_t>(targets),
          reader<T>(d_loss), reader<T>(weight), static_cast<const float*>(count), walk);
  });
}

}  // namespace tidemark::cuda
