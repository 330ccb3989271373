// Chooses the kernel for rows: in registers or shared memory where they lie one behind the other in
// one dtype; else kept in fp32 or not, in vectors or one by one.
#include "kernels/softmax/softmax.cuh"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_rows.cuh"

namespace tidemark::cuda {
namespace {

/// Starts kernel(whether rows are kept) with a block to a row.
template <typename T, typename Kernel, typename Arguments>
void start_long(Launch& launch, const char* name, const Kernel& kernel,
                const Arguments& arguments) {
  const std::int64_t bytes = arguments.width / vector_size<T> * 16;
  const bool is_cached = bytes + 1024 <= shared_room();
  start_with_room(launch, name, is_cached ? kernel(std::true_type{}) : kernel(std::false_type{}),
                  dim3(blocks_for(launch, arguments.rows, 1)), dim3(most_column_threads),
                  is_cached ? static_cast<std::size_t>(bytes) : 0, arguments);
}

template <bool is_log, bool is_watched, typename T>
void forward_rows(const SoftmaxRows<T>& a, Launch& launch, const char* name) {
  const ColumnPlan columns(a.width / vector_size<T>);
  if (columns.per_thread == 0)
    return start_long<T>(
        launch, name,
        [](auto is_cached) {
          return softmax_long_kernel<is_log, T, decltype(is_cached)::value, is_watched>;
        },
        a);
  with_columns<vectors_under_way>(columns, [&](auto per_thread) {
    constexpr int P = decltype(per_thread)::value;
    start(launch, name, softmax_columns_kernel<is_log, T, P, is_watched>,
          dim3(columns.blocks(a.rows, vectors_under_way / P)), columns.threads, 0, a);
  });
}

/// False if rows do not lie one behind the other, in one dtype: then nothing was done.
template <bool is_log>
bool forward_in_rows(const Array& x, const Array& y, Launch& launch, const char* name) {
  Array written = y;  // of its dtype, watched or not
  written.groups = {};
  bool is_done = false;
  with_dtype_of(std::array<const Array*, 2>{&x, &written}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat>) {
      Rows<2> rows;
      plan_rows<2>(launch, x.shape, {&x, &written}, 0, 1, rows);
      if (!lies_in_peeled_rows<2>(rows, {&x, &written})) return;
      const std::int64_t* stride = rows.outer.inner_stride;
      const SoftmaxRows<T> a{elements<const T>(x), elements<T>(y), rows.count,
                             rows.width,           stride[0],      stride[1],
                             DeviceGroups(y)};
      y.groups ? forward_rows<is_log, true>(a, launch, name)
               : forward_rows<is_log, false>(a, launch, name);
      is_done = true;
    }
  });
  return is_done;
}

template <bool is_log, typename T>
void backward_rows(const SoftmaxGradientRows<T>& a, Launch& launch, const char* name) {
  const ColumnPlan columns(a.width / vector_size<T>);
  if (columns.per_thread == 0)
    return start_long<T>(
        launch, name,
        [](auto is_cached) {
          return softmax_long_backward_kernel<is_log, T, decltype(is_cached)::value>;
        },
        a);
  with_columns<vectors_under_way>(columns, [&](auto per_thread) {
    constexpr int P = decltype(per_thread)::value;
    start(launch, name, softmax_columns_backward_kernel<is_log, T, P>,
          dim3(columns.blocks(a.rows, vectors_under_way / P)), columns.threads, 0, a);
  });
}

template <bool is_log>
void forward(const Call& call, Launch& launch, const char* name) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  if (numel(x.shape) == 0) return;
  if (forward_in_rows<is_log>(x, y, launch, name)) return;
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
    if constexpr (!std::is_same_v<T, AnyFloat>)
      if (lies_in_peeled_rows<3>(a.rows, {&y, &dy, &dx})) {
        const std::int64_t* stride = a.rows.outer.inner_stride;
        return backward_rows<is_log, T>(
            {elements<const T>(y), elements<const T>(dy), elements<T>(dx), a.rows.count,
             a.rows.width, stride[0], stride[1], stride[2]},
            launch, name);
      }
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
