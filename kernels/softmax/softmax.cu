// Chooses the kernel for rows: kept in shared memory or not, in vectors or one by one.
#include "kernels/softmax/softmax.cuh"
#include "kernels/softmax/softmax.h"

namespace tidemark::cuda {
namespace {

template <bool is_log>
void forward(const Call& call, Launch& launch, const char* name) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  if (numel(x.shape) == 0) return;
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    SoftmaxArguments<T> a{reader<T>(x), writer<T>(y), {}};
    const RowLaunch plan = plan_rows<2>(launch, x.shape, {&x, &y}, 1, V, a.rows);
    const auto kernel = plan.is_cached
                            ? (plan.has_vectors ? softmax_forward_kernel<is_log, T, V, true>
                                                : softmax_forward_kernel<is_log, T, 1, true>)
                            : (plan.has_vectors ? softmax_forward_kernel<is_log, T, V, false>
                                                : softmax_forward_kernel<is_log, T, 1, false>);
    start(launch, name, kernel, plan.blocks, plan.threads, plan.shared_bytes, a);
  });
}

template <bool is_log>
void backward(const Call& call, Launch& launch, const char* name) {
  const Array &y = call.outputs[0], &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx || numel(y.shape) == 0) return;
  if (!dy) return fill_with(launch, dx, 0);
  with_dtype_of(std::array{&y, &dy, &dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    SoftmaxGradientArguments<T> a{reader<T>(y), reader<T>(dy), writer<T>(dx), {}};
    const RowLaunch plan = plan_rows<3>(launch, y.shape, {&y, &dy, &dx}, 2, V, a.rows);
    const auto kernel = plan.is_cached
                            ? (plan.has_vectors ? softmax_backward_kernel<is_log, T, V, true>
                                                : softmax_backward_kernel<is_log, T, 1, true>)
                            : (plan.has_vectors ? softmax_backward_kernel<is_log, T, V, false>
                                                : softmax_backward_kernel<is_log, T, 1, false>);
    start(launch, name, kernel, plan.blocks, plan.threads, plan.shared_bytes, a);
  });
}

}  // namespace

void softmax_forward(const Call& call, Launch& launch) { forward<false>(call, launch, "softmax"); }
void softmax_backward(const Call& call, Launch& launch) {
  backward<false>(call, launch, "softmax backward");
}
void log_softmax_forward(const Call& call, Launch& launch) {
  forward<true>(call, launch, "log_softmax");
}
void log_softmax_backward(const Call& call, Launch& launch) {
  backward<true>(call, launch, "log_softmax backward");
}

}  // namespace tidemark::cuda
