// Softmax and log-softmax where rows lie one behind the other, of any length and beginning: rows
// that a block's registers hold, and longer ones, which shared memory keeps between two passes as
// far as it has room.
#pragma once

#include "kernels/cuda/peeled.cuh"
#include "kernels/cuda/watch.cuh"

namespace tidemark::cuda {

/// A result of 16 bits does not show the difference.
template <typename T>
__device__ inline float power_for(float x) {
  return sizeof(T) == 2 ? approximate_power(x) : expf(x);
}

template <typename T>
struct SoftmaxRows {
  const T* x = nullptr;
  T* y = nullptr;
  std::int64_t rows = 0, width = 0, x_stride = 0, y_stride = 0;
  DeviceGroups groups{};  ///< of y, where it is watched: the same bits
};

/// This thread's parts of the rows from `row` on.
template <typename T, int V, int P, int R>
__device__ inline void load_parts(const T* data, std::int64_t stride, std::int64_t row,
                                  std::int64_t rows, std::int64_t width, T other,
                                  PeeledPart<T, V, P> (&out)[R]) {
  const T* from = data + row * stride;
  TIDEMARK_UNROLL
  for (int r = 0; r < R; ++r, from += stride) {
    out[r].fill(other);
    if (row + r >= rows) continue;
    const Peel<V> peel(from, width);
    out[r].load_body(from, peel, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    out[r].load_end(from, peel);
  }
}

/// values[k] is of element k of the part.
template <typename T, int V, int P>
__device__ inline void store_part(T* row, const Peel<V>& peel,
                                  const float (&values)[PeeledPart<T, V, P>::size]) {
  TIDEMARK_UNROLL
  for (int j = 0; j < P; ++j) store_body<T, V>(row, peel, column_vector(j), values + j * V);
  store_end<T, V>(row, peel, values[P * V]);
}

/// What was stored, to whoever watches the array; `row`: the row's offset in it.
template <int V, typename Watcher>
__device__ inline void note_body(Watcher& watch, std::int64_t row, const Peel<V>& peel, int j,
                                 const float* values) {
  if (j >= peel.vectors) return;
  float own[V];
  for (int e = 0; e < V; ++e) own[e] = values[e];
  watch.note(row + peel.head + j * V, 1, V, own);
}
template <int V, typename Watcher>
__device__ inline void note_end(Watcher& watch, std::int64_t row, const Peel<V>& peel,
                                float value) {
  const int at = peel.end_element();
  const float own[1] = {value};
  if (at >= 0) watch.note(row + at, 1, 1, own);
}

template <bool is_log, typename T, int P, bool is_watched>
__global__ void __launch_bounds__(most_column_threads) softmax_columns_kernel(SoftmaxRows<T> a) {
  constexpr int V = vector_size<T>, R = vectors_under_way / P;
  using Part = PeeledPart<T, V, P>;
  __shared__ OfWarps<R> rooms[2];
  __shared__ BlockExtremes extremes;
  auto watch = watch_if<is_watched>(a.groups, extremes);
  unsigned turn = 0;
  const std::int64_t groups = (a.rows + R - 1) / R, step = thread_rows();
  // Blocks of several warps go through the loop together, as their barriers need.
  for (std::int64_t group = thread_row(); group < groups; group += step) {
    const std::int64_t row = group * R;
    Part part[R];
    load_parts<T, V, P>(a.x, a.x_stride, row, a.rows, a.width, rounded_to<T>(-INFINITY), part);
    float x[R][Part::size], most[R], sum[R];
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      most[r] = -INFINITY, sum[r] = 0;
      TIDEMARK_UNROLL
      for (int k = 0; k < Part::size; ++k) {
        x[r][k] = part[r].at(k);
        most[r] = fmaxf(most[r], x[r][k]);  // a NaN spoils the sum
      }
    }
    joined_in_row<Larger>(most, rooms, turn);
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      TIDEMARK_UNROLL
      for (int k = 0; k < Part::size; ++k) {
        const float power = power_for<T>(x[r][k] - most[r]);
        sum[r] += power;
        if constexpr (!is_log) x[r][k] = power;
      }
    }
    sums_of_row(sum, rooms, turn);
    T* to = a.y + row * a.y_stride;
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r, to += a.y_stride) {
      if (row + r >= a.rows) break;
      const float scale = 1.0f / sum[r], log_sum = is_log ? logf(sum[r]) : 0;
      TIDEMARK_UNROLL
      for (int k = 0; k < Part::size; ++k)
        x[r][k] = is_log ? x[r][k] - most[r] - log_sum : x[r][k] * scale;
      const Peel<V> peel(to, a.width);
      store_part<T, V, P>(to, peel, x[r]);
      if constexpr (is_watched) {
        TIDEMARK_UNROLL
        for (int j = 0; j < P; ++j)
          note_body<V>(watch, to - a.y, peel, column_vector(j), x[r] + j * V);
        note_end<V>(watch, to - a.y, peel, x[r][P * V]);
      }
    }
  }
  watch.finish();
}

/// Vectors of a long row that each thread of its block has under way: their numbers take 32
/// registers.
template <typename T>
inline constexpr int long_vectors = 32 / vector_size<T>;

/// Calls act(part, number of its first vector) for each of this thread's parts of the body; what is
/// beyond the body is `other`. Parts go to `cache`, if there is one.
template <typename T, int V, typename Act>
__device__ inline void for_body(const T* row, const Peel<V>& peel, T other, Pack<T, V>* cache,
                                const Act& act) {
  constexpr int P = long_vectors<T>;
  const auto step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < peel.vectors; first += P * step) {
    PeeledPart<T, V, P> part;
    part.fill(other);
    part.load_body(row, peel, first, step);
    if (cache != nullptr) {
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j)
        if (first + j * step < peel.vectors) cache[first + j * step] = part.body[j];
    }
    act(part, first);
  }
}

/// This thread's element of the ends.
template <typename T, int V>
__device__ inline float end_of(const T* row, const Peel<V>& peel, float other) {
  const int at = peel.end_element();
  return at >= 0 ? to_fp32(row[at]) : other;
}

/// Largest number, and the sum of powers beside it. Of −∞ alone the sum is 0.
struct Powers {
  float most, sum;
};
__device__ inline float finite_shift(float most) { return most == -INFINITY ? 0.0f : most; }

template <typename T, int V>
__device__ inline Powers powers_of(const T* row, const Peel<V>& peel, float end,
                                   Pack<T, V>* cache) {
  constexpr int size = long_vectors<T> * V;
  Powers own{end, power_for<T>(end - finite_shift(end))};
  for_body(row, peel, rounded_to<T>(-INFINITY), cache, [&](const auto& part, int) {
    float most = own.most;
    TIDEMARK_UNROLL
    for (int k = 0; k < size; ++k) most = fmaxf(most, part.at(k));
    const float shift = finite_shift(most);
    own.sum *= power_for<T>(own.most - shift);
    own.most = most;
    TIDEMARK_UNROLL
    for (int k = 0; k < size; ++k) own.sum += power_for<T>(part.at(k) - shift);
  });
  const float most = block_reduce<Max>(own.most);
  own.sum *= power_for<T>(own.most - finite_shift(most));
  return {most, block_sum(own.sum)};
}

/// A block to a row; `is_cached`: shared memory has room for it.
template <bool is_log, typename T, bool is_cached, bool is_watched>
__global__ void __launch_bounds__(most_column_threads) softmax_long_kernel(SoftmaxRows<T> a) {
  constexpr int V = vector_size<T>;
  __shared__ BlockExtremes extremes;
  auto watch = watch_if<is_watched>(a.groups, extremes);
  TIDEMARK_SHARED(float, shared);
  const auto cache = is_cached ? reinterpret_cast<Pack<T, V>*>(shared) : nullptr;
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const T* const from = a.x + r * a.x_stride;
    T* const to = a.y + r * a.y_stride;
    const Peel<V> peel(from, a.width);
    const float end = end_of<T, V>(from, peel, -INFINITY);
    const Powers powers = powers_of<T, V>(from, peel, end, cache);
    const float scale = 1.0f / powers.sum, log_sum = logf(powers.sum);
    const auto result = [&](float x) {
      const float low = x - powers.most;
      return is_log ? low - log_sum : power_for<T>(low) * scale;
    };
    for (auto j = static_cast<int>(threadIdx.x); j < peel.vectors; j += blockDim.x) {
      const Pack<T, V> pack =
          is_cached ? cache[j] : reinterpret_cast<const Pack<T, V>*>(from + peel.head)[j];
      float y[V];
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) y[e] = result(value_in(pack, e));
      store_body<T, V>(to, peel, j, y);
      note_body<V>(watch, to - a.y, peel, j, y);
    }
    store_end<T, V>(to, peel, result(end));
    note_end<V>(watch, to - a.y, peel, result(end));
  }
  watch.finish();
}

template <typename T>
struct SoftmaxGradientRows {
  const T *y = nullptr, *dy = nullptr;
  T* dx = nullptr;
  std::int64_t rows = 0, width = 0, y_stride = 0, dy_stride = 0, dx_stride = 0;
};

/// As softmax_backward_kernel: of one element, where `sum` is Σ dy · y, or of the logarithm Σ dy.
template <bool is_log, typename T>
__device__ inline float softmax_gradient(float y, float dy, float sum) {
  return is_log ? dy - power_for<T>(y) * sum : y * (dy - sum);
}

template <bool is_log, typename T, int P>
__global__ void __launch_bounds__(most_column_threads)
    softmax_columns_backward_kernel(SoftmaxGradientRows<T> a) {
  constexpr int V = vector_size<T>, R = vectors_under_way / P;
  using Part = PeeledPart<T, V, P>;
  __shared__ OfWarps<R> rooms[2];
  unsigned turn = 0;
  const std::int64_t groups = (a.rows + R - 1) / R, step = thread_rows();
  for (std::int64_t group = thread_row(); group < groups; group += step) {
    const std::int64_t row = group * R;
    Part y[R], dy[R];
    load_parts<T, V, P>(a.dy, a.dy_stride, row, a.rows, a.width, T{}, dy);
    load_parts<T, V, P>(a.y, a.y_stride, row, a.rows, a.width, T{}, y);
    float sum[R] = {};
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      TIDEMARK_UNROLL
      for (int k = 0; k < Part::size; ++k)  // beyond the row both are 0
        sum[r] += is_log ? dy[r].at(k) : dy[r].at(k) * y[r].at(k);
    }
    sums_of_row(sum, rooms, turn);
    T* to = a.dx + row * a.dx_stride;
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r, to += a.dx_stride) {
      if (row + r >= a.rows) break;
      float dx[Part::size];
      TIDEMARK_UNROLL
      for (int k = 0; k < Part::size; ++k)
        dx[k] = softmax_gradient<is_log, T>(y[r].at(k), dy[r].at(k), sum[r]);
      store_part<T, V, P>(to, Peel<V>(to, a.width), dx);
    }
  }
}

/// A block to a row; dy is kept, y comes a second time where its product was summed.
template <bool is_log, typename T, bool is_cached>
__global__ void __launch_bounds__(most_column_threads)
    softmax_long_backward_kernel(SoftmaxGradientRows<T> a) {
  constexpr int V = vector_size<T>, P = long_vectors<T>;
  using Part = PeeledPart<T, V, P>;
  TIDEMARK_SHARED(float, shared);
  const auto cache = is_cached ? reinterpret_cast<Pack<T, V>*>(shared) : nullptr;
  const auto step = static_cast<int>(blockDim.x);
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const T *const y = a.y + r * a.y_stride, *const dy = a.dy + r * a.dy_stride;
    T* const dx = a.dx + r * a.dx_stride;
    const Peel<V> peel(dy, a.width);
    const float y_end = end_of<T, V>(y, peel, 0), dy_end = end_of<T, V>(dy, peel, 0);
    float sum = is_log ? dy_end : dy_end * y_end;
    for_body(dy, peel, T{}, cache, [&](const Part& part, int first) {
      Part saved;
      if constexpr (!is_log) saved.fill(T{}), saved.load_body(y, peel, first, step);
      TIDEMARK_UNROLL
      for (int k = 0; k < P * V; ++k) sum += is_log ? part.at(k) : part.at(k) * saved.at(k);
    });
    sum = block_sum(sum);
    for_body(y, peel, T{}, static_cast<Pack<T, V>*>(nullptr), [&](const Part& saved, int first) {
      Part part;
      part.fill(T{});
      if constexpr (!is_cached) part.load_body(dy, peel, first, step);
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) {
        const int i = first + j * step;
        if (i >= peel.vectors) break;
        if constexpr (is_cached) part.body[j] = cache[i];
        float own[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e)
          own[e] = softmax_gradient<is_log, T>(saved.at(j * V + e), part.at(j * V + e), sum);
        store_body<T, V>(dx, peel, i, own);
      }
    });
    store_end<T, V>(dx, peel, softmax_gradient<is_log, T>(y_end, dy_end, sum));
  }
}

}  // namespace tidemark::cuda
