// Attention on the GPU. Each kernel has a block per tile of rows; a warp owns 16 of them. Tiles of
// the other side pass through shared memory one after the other, so nothing of the size of the
// scores is ever stored.
#pragma once

#include <cmath>

#include "kernels/attention/warp_product.cuh"
#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

/// Rows that a block owns, and columns that pass by; sized so that the largest kernel (keys and
/// values, two operands each, and the weights) stays below 64 KiB of shared memory, what devices of
/// capability 7.5 have.
template <typename T, int D>
struct AttentionTile {
  static constexpr bool is_wide = sizeof(T) == 4;
  static constexpr int rows = is_wide ? (D <= 64 ? 64 : D <= 128 ? 32 : 16) : (D <= 128 ? 64 : 32);
  static constexpr int columns = is_wide ? (D <= 64    ? 32
                                            : D <= 128 ? 16
                                                       : 8)
                                         : (D <= 64    ? 64
                                            : D <= 128 ? 32
                                                       : 16);
  static constexpr int threads = rows / 16 * 32;
  static constexpr int pad = 16 / sizeof(T);  ///< 16 bytes: rows begin in different banks
  static constexpr int pitch = D + pad, weights_pitch = columns + pad;
};

struct HeadOperand {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
  std::int64_t batch = 0, head = 0, token = 0, channel = 0;  ///< strides
  bool has_vectors = false;                                  ///< 16 bytes may be read at once
};

/// fp32; the launch converts others, so that the inner loops need not ask.
struct BiasOperand {
  const float* data = nullptr;
  std::int64_t batches = 1, heads = 1;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  ///< strides, 0 = repeated
};

/// Columns of a tile, [begin, end).
struct TileRange {
  int begin, end;
  __device__ static TileRange within(std::int64_t begin, std::int64_t end, int count) {
    const auto clamped = [&](std::int64_t x) {
      return x < 0 ? 0 : x > count ? count : static_cast<int>(x);
    };
    return {clamped(begin), clamped(end)};
  }
  __device__ bool has(int column) const { return column >= begin && column < end; }
};

struct AttentionShape {
  std::int64_t batches, heads, key_heads, tokens, keys, window;
  int d, e;
  float scale;
  bool causal;

  /// Of the `count` keys from j0 on, those that query i sees.
  __device__ TileRange keys_of_query(std::int64_t i, std::int64_t j0, int count) const {
    const std::int64_t begin = window > 0 ? i - window + 1 : 0;
    const std::int64_t end = causal && i + 1 < keys ? i + 1 : keys;
    return TileRange::within(begin - j0, i < tokens ? end - j0 : 0, count);
  }
  /// Of the `count` queries from i0 on, those that see key j.
  __device__ TileRange queries_of_key(std::int64_t j, std::int64_t i0, int count) const {
    const std::int64_t begin = causal ? j : 0;
    const std::int64_t end = window > 0 && j + window < tokens ? j + window : tokens;
    return TileRange::within(begin - i0, j < keys ? end - i0 : 0, count);
  }
  /// All of them exist, and each query sees each key: most tiles need not ask element by element.
  __device__ bool all_seen(std::int64_t i0, int queries, std::int64_t j0, int columns) const {
    return i0 + queries <= tokens && j0 + columns <= keys && (!causal || j0 + columns <= i0 + 1) &&
           (window == 0 || j0 > i0 + queries - 1 - window);
  }
};

struct AttentionOperands {
  AttentionShape shape{};
  HeadOperand q, k, v, y, dy;
  BiasOperand bias;
  float* lse = nullptr;  ///< dense [batch, head, token], as are the dots
  float* dots = nullptr;
};

/// Keys that a tile of queries sees, or queries that see a tile of keys.
struct Span {
  std::int64_t begin, end;
};
__device__ inline Span keys_seen(const AttentionShape& s, std::int64_t first, int count) {
  const std::int64_t last = (first + count < s.tokens ? first + count : s.tokens) - 1;
  const std::int64_t begin = s.window > 0 && first - s.window + 1 > 0 ? first - s.window + 1 : 0;
  return {begin, s.causal && last + 1 < s.keys ? last + 1 : s.keys};
}
__device__ inline Span queries_seeing(const AttentionShape& s, std::int64_t first, int count) {
  const std::int64_t last = (first + count < s.keys ? first + count : s.keys) - 1;
  const std::int64_t end = s.window > 0 ? last + s.window : s.tokens;
  return {s.causal ? first : 0, end < s.tokens ? end : s.tokens};
}

template <typename T>
__device__ inline const T* head_at(const HeadOperand& x, std::int64_t b, std::int64_t h) {
  return reinterpret_cast<const T*>(x.data) + b * x.batch + h * x.head;
}

/// Rows from `first` on, all threads of the block together; beyond `end` and `width` zeros.
template <int D, typename T>
__device__ inline void load_tile(SharedMatrix<T> tile, int rows, const T* from,
                                 const HeadOperand& x, std::int64_t first, std::int64_t end,
                                 int width) {
  constexpr int V = 16 / sizeof(T);
  for (int i = static_cast<int>(threadIdx.x); i < rows * (D / V);
       i += static_cast<int>(blockDim.x)) {
    const int row = i / (D / V), column = i % (D / V) * V;
    Pack<T, V> pack{};
    const T* source = from + (first + row) * x.token + column * x.channel;
    if (first + row < end && x.has_vectors && column + V <= width) {
      pack = *reinterpret_cast<const Pack<T, V>*>(source);
    } else if (first + row < end) {
      for (int k = 0; k < V; ++k)
        if (column + k < width) pack.values[k] = source[k * x.channel];
    }
    *reinterpret_cast<Pack<T, V>*>(tile.row(row) + column) = pack;
  }
}

// Weights are powers of two: what scores are multiplied by holds 1 / ln 2, so that no exponential
// multiplies once more. The sums that are saved are natural logarithms.
inline constexpr float log2_of_e = 1.44269504f, log_of_2 = 0.693147181f;

/// From natural logarithms. A mask of the dtype's least number stays one: −∞ would mean that the
/// key is not there.
__device__ inline float by_powers_of_2(float x) {
  constexpr float least = -3.402823466e38f;
  const float power = x * log2_of_e;
  return power < least && x >= least ? least : power;
}

/// What one head adds to its scores.
struct HeadBias {
  const float* data;
  std::int64_t row, column;

  __device__ HeadBias(const BiasOperand& bias, std::int64_t b, std::int64_t h)
      : data(bias.data), row(bias.row), column(bias.column) {
    if (data != nullptr) data += b % bias.batches * bias.batch + h % bias.heads * bias.head;
  }
  __device__ float at(std::int64_t i, std::int64_t j) const {
    return data == nullptr ? 0 : by_powers_of_2(data[i * row + j * column]);
  }
};

/// From products of 16 rows with columns to scores: queries and keys, or with `swapped` keys and
/// queries, from i0 and j0 on. −∞ where the one does not see the other.
template <bool swapped, int N>
__device__ inline void finish_scores(WarpSums<N>& scores, const AttentionShape& s,
                                     const HeadBias& bias, std::int64_t i0, std::int64_t j0) {
  const float factor = s.scale * log2_of_e;
  if (bias.data == nullptr && s.all_seen(i0, swapped ? N : 16, j0, swapped ? 16 : N)) {
    for_elements(scores, [&](int, int, float& x) { x *= factor; });
    return;
  }
  const auto range_of = [&](int row) {
    return swapped ? s.queries_of_key(j0 + row, i0, N) : s.keys_of_query(i0 + row, j0, N);
  };
  const TileRange seen[2] = {range_of(scores.row(0)), range_of(scores.row(2))};
  for_elements(scores, [&](int row, int column, float& x) {
    const int i = swapped ? column : row, j = swapped ? row : column;
    x = seen[row / 8].has(column) ? x * factor + bias.at(i0 + i, j0 + j) : -INFINITY;
  });
}

/// Sums and maxima of a row lie in four neighbouring lanes.
__device__ inline float sum_of_row(float x) {
  x += __shfl_xor_sync(whole_warp, x, 1);
  return x + __shfl_xor_sync(whole_warp, x, 2);
}
__device__ inline float maximum_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(whole_warp, x, 1));
  return fmaxf(x, __shfl_xor_sync(whole_warp, x, 2));
}

/// factor · sums of the warp's rows, to memory. Results are of the operands' dtype, unless dtypes
/// are mixed, and then operands are fp32.
template <typename T, int D>
__device__ inline void write_rows(const HeadOperand& x, std::int64_t b, std::int64_t h,
                                  std::int64_t first, std::int64_t end, int width,
                                  WarpSums<D>& sums, float factor) {
  const std::int64_t start = b * x.batch + h * x.head;
  const auto offset = [&](int row, int column) {
    return start + (first + row) * x.token + column * x.channel;
  };
  for_elements(sums, [&](int row, int column, float value) {
    if (first + row >= end || column >= width) return;
    if constexpr (sizeof(T) == 4)
      store_one(Writer<AnyFloat>{x.data, x.dtype}, offset(row, column), value * factor);
    else
      reinterpret_cast<T*>(x.data)[offset(row, column)] = rounded_to<T>(value * factor);
  });
}

/// Which tile of which head this block owns: tiles are fastest, so that neighbours share a head.
struct BlockPlace {
  std::int64_t first, head, batch;
};
__device__ inline BlockPlace block_place(std::int64_t tokens, int rows, std::int64_t heads) {
  const std::int64_t tiles = (tokens + rows - 1) / rows, block = blockIdx.x;
  return {block % tiles * rows, block / tiles % heads, block / tiles / heads};
}

template <typename T, int D>
struct ForwardTiles {
  using Tile = AttentionTile<T, D>;
  int first_row = static_cast<int>(threadIdx.x / warp_size) * 16;  ///< first: `weights` uses it
  SharedMatrix<T> queries, keys, values, weights;

  __device__ explicit ForwardTiles(T* shared)
      : queries{shared, Tile::pitch},
        keys{queries.row(Tile::rows), Tile::pitch},
        values{keys.row(Tile::columns), Tile::pitch},
        weights{values.row(Tile::columns) + first_row * Tile::weights_pitch, Tile::weights_pitch} {}
  static constexpr std::size_t bytes = sizeof(T) * ((Tile::rows + 2 * Tile::columns) * Tile::pitch +
                                                    Tile::rows * Tile::weights_pitch);
};

template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, 1)
    attend(const AttentionOperands o) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const ForwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.tokens, Tile::rows, s.heads);
  const std::int64_t b = place.batch, h = place.head, kh = h / (s.heads / s.key_heads);
  const std::int64_t i0 = place.first + tiles.first_row;
  load_tile<D>(tiles.queries, Tile::rows, head_at<T>(o.q, b, h), o.q, place.first, s.tokens, s.d);

  WarpSums<D> sums;
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};
  const HeadBias bias(o.bias, b, h);
  const Span seen = keys_seen(s, place.first, Tile::rows);
  for (std::int64_t j0 = seen.begin; j0 < seen.end; j0 += Tile::columns) {
    __syncthreads();
    load_tile<D>(tiles.keys, Tile::columns, head_at<T>(o.k, b, kh), o.k, j0, s.keys, s.d);
    load_tile<D>(tiles.values, Tile::columns, head_at<T>(o.v, b, kh), o.v, j0, s.keys, s.e);
    __syncthreads();
    if (i0 >= s.tokens) continue;  // a warp without queries only helps to load
    WarpSums<Tile::columns> scores;
    add_product_transposed(scores, SharedMatrix<T>{tiles.queries.row(tiles.first_row), Tile::pitch},
                           tiles.keys, D);
    finish_scores<false>(scores, s, bias, i0, j0);

    float highest[2] = {maximum[0], maximum[1]};
    for_elements(scores,
                 [&](int row, int, float x) { highest[row / 8] = fmaxf(highest[row / 8], x); });
    float factor[2], base[2];
    for (int half = 0; half < 2; ++half) {
      highest[half] = maximum_of_row(highest[half]);
      // Equal first: −∞ − (−∞) is no number. Nothing seen yet: weights relative to 0 are all 0.
      factor[half] = highest[half] == maximum[half] ? 1 : power_of_2(maximum[half] - highest[half]);
      maximum[half] = highest[half];
      base[half] = highest[half] == -INFINITY ? 0 : highest[half];
      total[half] *= factor[half];
    }
    for_elements(scores, [&](int row, int, float& x) {
      x = power_of_2(x - base[row / 8]);
      total[row / 8] += x;
    });
    for_elements(sums, [&](int row, int, float& x) { x *= factor[row / 8]; });
    add_product_of_sums(sums, scores, tiles.weights, tiles.values);
  }

  for (int half = 0; half < 2; ++half) {
    total[half] = sum_of_row(total[half]);
    const std::int64_t i = i0 + sums.row(2 * half);
    if (o.lse != nullptr && i < s.tokens && threadIdx.x % 4 == 0)
      o.lse[(b * s.heads + h) * s.tokens + i] = maximum[half] * log_of_2 + logf(total[half]);
    total[half] = total[half] == 0 ? 0 : 1 / total[half];
  }
  for_elements(sums, [&](int row, int, float& x) { x *= total[row / 8]; });
  if (o.y.data != nullptr) write_rows<T>(o.y, b, h, i0, s.tokens, s.e, sums, 1);
}

}  // namespace tidemark::cuda
