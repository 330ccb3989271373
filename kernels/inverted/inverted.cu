// Launches of inverted.cuh; see inverted.h.
#include "kernels/inverted/inverted.cuh"
#include "kernels/inverted/inverted.h"

namespace tidemark::cuda {
namespace {

/// Row by row without a gap, in whole vectors of 16 bytes from the first element on.
template <std::size_t N>
bool are_rows_of_vectors(const std::array<const Array*, N>& arrays) {
  return std::ranges::all_of(arrays, [](const Array* array) {
    return is_dense(array->layout()) && reinterpret_cast<std::uintptr_t>(array->data) % 16 == 0;
  });
}

template <typename Function>
void forward(const Call& call, Launch& launch, const char* name, float minimum) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t count = numel(x.shape);
  if (count == 0) return;
  const bool dense = are_rows_of_vectors<2>({&x, &y});
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = dense ? inverted_forward_kernel<Function, T, true>
                              : inverted_forward_kernel<Function, T, false>;
    start(launch, name, kernel, dim3(blocks_for(launch, (count + per_byte - 1) / per_byte)),
          dim3(usual_threads), 0, reader<T>(x), writer<T>(y),
          elements<std::uint8_t>(call.outputs[1]), minimum, walk_in_order<2>(x.shape, {&x, &y}),
          count);
  });
}

void backward(const Call& call, Launch& launch, const char* name, const SlopeOfValue& f) {
  const Array &dy = call.d_outputs[0], &y = call.outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  const std::int64_t count = numel(dx.shape);
  if (count == 0) return;
  const bool dense = are_rows_of_vectors<3>({&dy, &y, &dx});
  with_dtype_of(std::array{&dy, &y, &dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel =
        dense ? inverted_backward_kernel<T, true> : inverted_backward_kernel<T, false>;
    start(launch, name, kernel, dim3(blocks_for(launch, (count + per_byte - 1) / per_byte)),
          dim3(usual_threads), 0, reader<T>(dy), reader<T>(y), writer<T>(dx),
          elements<const std::uint8_t>(call.outputs[1]), f,
          walk_in_order<3>(dx.shape, {&dy, &y, &dx}), count);
  });
}

}  // namespace

void inverted_gelu_forward(const Call& call, Launch& launch) {
  forward<GeluErf>(call, launch, "inverted gelu", slope_of_gelu.minimum);
}
void inverted_gelu_backward(const Call& call, Launch& launch) {
  backward(call, launch, "inverted gelu backward", slope_of_gelu);
}
void inverted_tanh_gelu_forward(const Call& call, Launch& launch) {
  forward<GeluTanh>(call, launch, "inverted gelu tanh", slope_of_tanh_gelu.minimum);
}
void inverted_tanh_gelu_backward(const Call& call, Launch& launch) {
  backward(call, launch, "inverted gelu tanh backward", slope_of_tanh_gelu);
}
void inverted_silu_forward(const Call& call, Launch& launch) {
  forward<Silu>(call, launch, "inverted silu", slope_of_silu.minimum);
}
void inverted_silu_backward(const Call& call, Launch& launch) {
  backward(call, launch, "inverted silu backward", slope_of_silu);
}

}  // namespace tidemark::cuda
