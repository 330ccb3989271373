// The whole backward of a norm in one pass: x and dy are read once for dx and for the sums of its
// weight and bias. Each thread keeps its columns' sums over all rows that its block works on in
// registers; the blocks' sums are joined by a second, small kernel.
#pragma once

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/own_group.cuh"
#include "kernels/norm/norm.cuh"

namespace tidemark::cuda {

/// Vectors of a row per thread at most, and rows at once: what is kept of more of them does not fit
/// into 128 registers. Elements of another dtype are kept in fp32.
template <typename T>
inline constexpr int most_norm_vectors = 16 / vector_size<T>;
template <typename T, typename X, int P>
inline constexpr int norm_rows_at_once = sizeof(T) == 2 && (P == 2 || std::is_same_v<X, AnyFloat>)
                                             ? 2 / P
                                             : vectors_under_way / P;

/// Threads of a multiprocessor: with 128 bytes each under way they ask for twice of what hides the
/// memory's latency (pointwise.cuh), and each block more is a row of sums that is written and read.
inline constexpr unsigned norm_threads_per_processor = 512;

/// Codes of a byte, whose groups are the same in every row.
struct RowCodes {};
template <>
struct Reader<RowCodes> {
  const std::uint8_t* data = nullptr;
  DeviceGroups groups{};
};

/// A whole vector, side by side in memory, of one group if it is coded.
template <int V, typename T>
__device__ inline void load_vector(const Reader<T>& from, std::int64_t offset, float (&out)[V]) {
  const auto take = [&](auto* data) {
    const auto pack = *reinterpret_cast<const Pack<std::decay_t<decltype(*data)>, V>*>(
        reinterpret_cast<const std::byte*>(data + offset));
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) out[e] = value_in(pack, e);
  };
  if constexpr (!std::is_same_v<T, AnyFloat>) {
    take(from.data);
  } else if (from.dtype == DType::UInt8) {
    const auto pack = *reinterpret_cast<const Pack<std::uint8_t, V>*>(from.data + offset);
    const GroupRange group = from.groups.range_at(offset);
    TIDEMARK_UNROLL
    for (int e = 0; e < V; ++e) out[e] = decoded(pack.values[e], group, 8);
  } else if (from.dtype == DType::Float32) {
    take(reinterpret_cast<const float*>(from.data));
  } else if (from.dtype == DType::BFloat16) {
    take(reinterpret_cast<const BFloat16*>(from.data));
  } else {
    take(reinterpret_cast<const Float16*>(from.data));
  }
}

/// X: RowCodes or AnyFloat where x is of another dtype than the gradients, or coded.
template <typename T, typename X>
struct WholeNormArguments {
  Reader<X> x;
  const T* dy = nullptr;
  Reader<AnyFloat> gamma;
  T* dx = nullptr;
  const float *mean = nullptr, *rstd = nullptr;  ///< mean absent = 0
  std::int64_t rows = 0;
  std::int64_t stride[norm_gradient_operands] = {};  ///< from row to row
  int vectors = 0;
  float share = 0;                            ///< of one element in its row
  bool is_normalized = false;                 ///< x is already (x − mean) · rstd
  DType rounded = DType::Float32;             ///< of the normalized row that γ was multiplied by
  float *dgamma = nullptr, *dbeta = nullptr;  ///< [rows of threads, width] each
};

/// Vectors of x as they are kept.
template <typename X>
struct NormElement {
  using type = X;
};
template <>
struct NormElement<AnyFloat> {
  using type = float;
};
template <>
struct NormElement<RowCodes> {
  using type = std::uint8_t;
};
template <typename X, int V>
using NormVector = Pack<typename NormElement<X>::type, V>;

/// How the elements of this thread's columns are read: as they are, or by their groups.
template <typename X, int V, int P>
struct ColumnDecoders {
  template <typename Arguments>
  __device__ explicit ColumnDecoders(const Arguments&) {}
  __device__ float value(const NormVector<X, V>& pack, int, int e) const {
    return value_in(pack, e);
  }
};
template <int V, int P>
struct ColumnDecoders<RowCodes, V, P> {
  template <typename Arguments>
  __device__ explicit ColumnDecoders(const Arguments& a) {
    TIDEMARK_UNROLL
    for (int j = 0; j < P; ++j)
      if (column_vector(j) < a.vectors)
        decoders[j] = Decoder(a.x.groups.range_at(column_vector(j) * V), 8);
  }
  __device__ float value(const NormVector<RowCodes, V>& pack, int j, int e) const {
    return decoders[j](number_in(pack, e));
  }
  Decoder decoders[P];
};

/// Of the rows from `row` on; what is beyond their end or number is zero.
template <typename T, typename X, int V, int R, int P>
__device__ inline void load_x(const WholeNormArguments<T, X>& a, std::int64_t row,
                              NormVector<X, V> (&x)[R][P]) {
  if constexpr (!std::is_same_v<X, AnyFloat>) {
    load_rows(a.x.data, a.stride[grad_x], row, a.rows, a.vectors, x);
  } else {
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) {
        x[r][j] = {};
        const int i = column_vector(j);
        if (row + r < a.rows && i < a.vectors)
          load_vector<V>(a.x, (row + r) * a.stride[grad_x] + i * V, x[r][j].values);
      }
    }
  }
}

/// This thread's columns, to its row of `sums`.
template <int P, int V>
__device__ inline void write_column_sums(const float (&own)[P][V], int vectors, float* sums) {
  if (sums == nullptr) return;
  TIDEMARK_UNROLL
  for (int j = 0; j < P; ++j) {
    const int i = column_vector(j);
    if (i < vectors)
      reinterpret_cast<Pack<float, V>*>(sums)[thread_row() * vectors + i] = packed<float>(own[j]);
  }
}

template <bool is_centred, typename T, typename X, int P>
__global__ void __launch_bounds__(most_column_threads)
    norm_whole_backward_kernel(WholeNormArguments<T, X> a) {
  constexpr int V = vector_size<T>, R = norm_rows_at_once<T, X, P>;
  __shared__ OfWarps<2 * R> rooms[2];
  unsigned turn = 0;
  float dgamma[P][V] = {}, dbeta[P][V] = {}, gamma[P][V];
  TIDEMARK_UNROLL
  for (int j = 0; j < P; ++j) {
    for (int e = 0; e < V; ++e) gamma[j][e] = 1;
    const int i = column_vector(j);
    if (a.gamma.data != nullptr && i < a.vectors) load_vector<V>(a.gamma, i * V, gamma[j]);
  }
  const ColumnDecoders<X, V, P> decoders(a);
  const std::int64_t groups = (a.rows + R - 1) / R, step = thread_rows();
  // Blocks of several warps go through the loop together, as their barriers need.
  for (std::int64_t group = thread_row(); group < groups; group += step) {
    const std::int64_t row = group * R;
    float mean[R] = {}, rstd[R] = {};
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      const bool is_there = row + r < a.rows;
      if (is_there) rstd[r] = a.rstd[(row + r) * a.stride[grad_rstd]];
      if (is_there && a.mean != nullptr) mean[r] = a.mean[(row + r) * a.stride[grad_mean]];
    }
    Pack<T, V> dy[R][P];
    load_rows(a.dy, a.stride[grad_dy], row, a.rows, a.vectors, dy);
    NormVector<X, V> x[R][P];
    load_x<T, X, V>(a, row, x);
    float factor[R];
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) factor[r] = a.is_normalized ? 1.0f : rstd[r];
    const auto normalized = [&](int r, int j, int e) {
      return (decoders.value(x[r][j], j, e) - mean[r]) * factor[r];
    };

    float sums[2 * R] = {};  // of g = dy · γ, and of g · z
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r) {
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) {
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) {  // beyond the row d is 0
          const float d = value_in(dy[r][j], e), g = d * gamma[j][e], z = normalized(r, j, e);
          // What γ was multiplied by: an RMSNorm of two kernels has rounded it.
          dgamma[j][e] += d * (is_centred ? z : rounded_as(a.rounded, z));
          dbeta[j][e] += d;
          if constexpr (is_centred) sums[r] += g;
          sums[R + r] += g * z;
        }
      }
    }
    sums_of_row(sums, rooms, turn);
    T* to = a.dx + row * a.stride[grad_dx];
    TIDEMARK_UNROLL
    for (int r = 0; r < R; ++r, to += a.stride[grad_dx]) {
      if (row + r >= a.rows) break;
      const float sum = sums[r] * a.share, product = sums[R + r] * a.share;
      TIDEMARK_UNROLL
      for (int j = 0; j < P; ++j) {
        const int i = column_vector(j);
        if (i >= a.vectors) continue;
        float dx[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) {
          const float g = value_in(dy[r][j], e) * gamma[j][e];
          dx[e] = rstd[r] * (g - sum - normalized(r, j, e) * product);
        }
        reinterpret_cast<Pack<T, V>*>(to)[i] = packed<T>(dx);
      }
    }
  }
  write_column_sums<P, V>(dgamma, a.vectors, a.dgamma);
  write_column_sums<P, V>(dbeta, a.vectors, a.dbeta);
}

}  // namespace tidemark::cuda
