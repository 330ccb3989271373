// Attention on the GPU. Each kernel has a block per tile of rows; a warp owns 16 of them. Tiles of
// the other side pass through shared memory one after the other, so nothing of the size of the
// scores is ever stored.
//
// The backward has one kernel per gradient, each of which computes the weights again: nothing is
// added by atomics, so that equal inputs give equal bits.
#pragma once

#include <cmath>

#include "kernels/attention/warp_product.cuh"
#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

/// Rows that a block owns, and columns that pass by; sized so that the largest kernel (keys and
/// values, two operands each, and the weights) stays below 64 KiB of shared memory, what cards of
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

struct BiasOperand {
  Reader<AnyFloat> data;
  std::int64_t batches = 1, heads = 1;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;  ///< strides, 0 = repeated
};

struct AttentionShape {
  std::int64_t batches, heads, key_heads, tokens, keys, window;
  int d, e;
  float scale;
  bool causal;

  __device__ bool sees(std::int64_t i, std::int64_t j) const {
    return i < tokens && j < keys && (!causal || j <= i) && (window == 0 || j > i - window);
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

__device__ inline float bias_at(const BiasOperand& bias, std::int64_t b, std::int64_t h,
                                std::int64_t i, std::int64_t j) {
  if (bias.data.data == nullptr) return 0;
  return load_one(bias.data, b % bias.batches * bias.batch + h % bias.heads * bias.head +
                                 i * bias.row + j * bias.column);
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

template <int N, typename T>
__device__ inline void store_rounded(SharedMatrix<T> tile, WarpSums<N>& sums) {
  for_elements(sums, [&](int row, int column, float value) {
    tile.row(row)[column] = rounded_to<T>(value);
  });
}

/// factor · sums of the warp's rows, to memory.
template <int D>
__device__ inline void write_rows(const HeadOperand& x, std::int64_t b, std::int64_t h,
                                  std::int64_t first, std::int64_t end, int width,
                                  WarpSums<D>& sums, float factor) {
  const Writer<AnyFloat> writer{x.data, x.dtype};
  for_elements(sums, [&](int row, int column, float value) {
    if (first + row < end && column < width)
      store_one(writer, b * x.batch + h * x.head + (first + row) * x.token + column * x.channel,
                value * factor);
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
__global__ void __launch_bounds__(AttentionTile<T, D>::threads) attend(const AttentionOperands o) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.tokens, Tile::rows, s.heads);
  const std::int64_t b = place.batch, h = place.head, kh = h / (s.heads / s.key_heads);
  const int first_row = static_cast<int>(threadIdx.x / warp_size) * 16;
  const std::int64_t i0 = place.first + first_row;
  const SharedMatrix<T> queries{shared, Tile::pitch};
  const SharedMatrix<T> other{queries.row(Tile::rows), Tile::pitch};  // keys, then values
  const SharedMatrix<T> weights{other.row(Tile::columns) + first_row * Tile::weights_pitch,
                                Tile::weights_pitch};
  load_tile<D>(queries, Tile::rows, head_at<T>(o.q, b, h), o.q, place.first, s.tokens, s.d);

  WarpSums<D> sums;
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};
  const Span seen = keys_seen(s, place.first, Tile::rows);
  for (std::int64_t j0 = seen.begin; j0 < seen.end; j0 += Tile::columns) {
    __syncthreads();
    load_tile<D>(other, Tile::columns, head_at<T>(o.k, b, kh), o.k, j0, s.keys, s.d);
    __syncthreads();
    WarpSums<Tile::columns> scores;
    add_product_transposed(scores, SharedMatrix<T>{queries.row(first_row), Tile::pitch}, other, D);

    float highest[2] = {maximum[0], maximum[1]};
    for_elements(scores, [&](int row, int column, float& x) {
      const std::int64_t i = i0 + row, j = j0 + column;
      x = s.sees(i, j) ? x * s.scale + bias_at(o.bias, b, h, i, j) : -INFINITY;
      highest[row / 8] = fmaxf(highest[row / 8], x);
    });
    float factor[2], base[2];
    for (int half = 0; half < 2; ++half) {
      highest[half] = maximum_of_row(highest[half]);
      // Equal first: −∞ − (−∞) is no number. Nothing seen yet: weights relative to 0 are all 0.
      factor[half] = highest[half] == maximum[half] ? 1 : expf(maximum[half] - highest[half]);
      maximum[half] = highest[half];
      base[half] = highest[half] == -INFINITY ? 0 : highest[half];
      total[half] *= factor[half];
    }
    for_elements(scores, [&](int row, int, float& x) {
      x = expf(x - base[row / 8]);
      total[row / 8] += x;
    });
    store_rounded(weights, scores);
    __syncthreads();
    load_tile<D>(other, Tile::columns, head_at<T>(o.v, b, kh), o.v, j0, s.keys, s.e);
    __syncthreads();
    for_elements(sums, [&](int row, int, float& x) { x *= factor[row / 8]; });
    add_product(sums, weights, other, Tile::columns);
  }

  for (int half = 0; half < 2; ++half) {
    total[half] = sum_of_row(total[half]);
    const std::int64_t i = i0 + sums.row(2 * half);
    if (o.lse != nullptr && i < s.tokens && threadIdx.x % 4 == 0)
      o.lse[(b * s.heads + h) * s.tokens + i] = maximum[half] + logf(total[half]);
    total[half] = total[half] == 0 ? 0 : 1 / total[half];
  }
  for_elements(sums, [&](int row, int, float& x) { x *= total[row / 8]; });
  if (o.y.data != nullptr) write_rows(o.y, b, h, i0, s.tokens, s.e, sums, 1);
}

/// dots = Σ dy · y per row: one warp each.
template <typename T>
__global__ void dot_rows(const AttentionOperands o, std::int64_t rows) {
  const AttentionShape& s = o.shape;
  const std::int64_t row = thread_of_grid() / warp_size;
  if (row >= rows) return;
  const std::int64_t i = row % s.tokens, h = row / s.tokens % s.heads, b = row / s.tokens / s.heads;
  const T* dy = head_at<T>(o.dy, b, h) + i * o.dy.token;
  const Reader<AnyFloat> y{o.y.data, o.y.dtype};
  float sum = 0;
  for (int c = static_cast<int>(threadIdx.x % warp_size); c < s.e; c += warp_size)
    sum += to_fp32(dy[c * o.dy.channel]) *
           load_one(y, b * o.y.batch + h * o.y.head + i * o.y.token + c * o.y.channel);
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(whole_warp, sum, distance);
  if (threadIdx.x % warp_size == 0) o.dots[row] = sum;
}

/// From the score's product and that of dy · v: the weight, and the gradient of the score.
struct WeightAndError {
  float weight, error;
};
__device__ inline WeightAndError weigh(const AttentionOperands& o, std::int64_t b, std::int64_t h,
                                       std::int64_t i, std::int64_t j, float product,
                                       float d_weight) {
  if (!o.shape.sees(i, j)) return {0, 0};
  const std::int64_t row = (b * o.shape.heads + h) * o.shape.tokens + i;
  const float lse = o.lse[row];
  if (lse == -INFINITY) return {0, 0};
  const float weight = expf(product * o.shape.scale + bias_at(o.bias, b, h, i, j) - lse);
  return {weight, weight * (d_weight - o.dots[row])};
}

/// Where the backward's kernels keep their operands: two of the block's rows, two that pass by.
template <typename T, int D>
struct BackwardTiles {
  using Tile = AttentionTile<T, D>;
  int first_row = static_cast<int>(threadIdx.x / warp_size) * 16;  ///< first: `weights` uses it
  SharedMatrix<T> own0, own1, other0, other1, weights;

  __device__ explicit BackwardTiles(T* shared)
      : own0{shared, Tile::pitch},
        own1{own0.row(Tile::rows), Tile::pitch},
        other0{own1.row(Tile::rows), Tile::pitch},
        other1{other0.row(Tile::columns), Tile::pitch},
        weights{other1.row(Tile::columns) + first_row * Tile::weights_pitch, Tile::weights_pitch} {}
  static constexpr std::size_t bytes = sizeof(T) * (2 * (Tile::rows + Tile::columns) * Tile::pitch +
                                                    Tile::rows * Tile::weights_pitch);

  /// products = own0 · other0ᵀ, d_weights = own1 · other1ᵀ, for the warp's rows.
  __device__ void multiply(WarpSums<Tile::columns>& products,
                           WarpSums<Tile::columns>& d_weights) const {
    add_product_transposed(products, SharedMatrix<T>{own0.row(first_row), Tile::pitch}, other0, D);
    add_product_transposed(d_weights, SharedMatrix<T>{own1.row(first_row), Tile::pitch}, other1, D);
  }
};

/// dq = dS · k / √d: a block per tile of queries.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads)
    attend_dq(const AttentionOperands o, const HeadOperand dq) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.tokens, Tile::rows, s.heads);
  const std::int64_t b = place.batch, h = place.head, kh = h / (s.heads / s.key_heads);
  const std::int64_t i0 = place.first + tiles.first_row;
  load_tile<D>(tiles.own0, Tile::rows, head_at<T>(o.q, b, h), o.q, place.first, s.tokens, s.d);
  load_tile<D>(tiles.own1, Tile::rows, head_at<T>(o.dy, b, h), o.dy, place.first, s.tokens, s.e);
  WarpSums<D> sums;
  const Span seen = keys_seen(s, place.first, Tile::rows);
  for (std::int64_t j0 = seen.begin; j0 < seen.end; j0 += Tile::columns) {
    __syncthreads();
    load_tile<D>(tiles.other0, Tile::columns, head_at<T>(o.k, b, kh), o.k, j0, s.keys, s.d);
    load_tile<D>(tiles.other1, Tile::columns, head_at<T>(o.v, b, kh), o.v, j0, s.keys, s.e);
    __syncthreads();
    WarpSums<Tile::columns> scores, errors;
    tiles.multiply(scores, errors);
    TIDEMARK_UNROLL
    for (int piece = 0; piece < Tile::columns / 8; ++piece) {
      TIDEMARK_UNROLL
      for (int k = 0; k < 4; ++k)
        errors.of[piece][k] = weigh(o, b, h, i0 + errors.row(k), j0 + errors.column(piece, k),
                                    scores.of[piece][k], errors.of[piece][k])
                                  .error;
    }
    store_rounded(tiles.weights, errors);
    __syncwarp();
    add_product(sums, tiles.weights, tiles.other0, Tile::columns);
  }
  write_rows(dq, b, h, i0, s.tokens, s.d, sums, s.scale);
}

/// dk = dSᵀ · q / √d and dv = Pᵀ · dy: a block per tile of keys, over the query heads that share
/// them. Scores are computed transposed, so that a warp owns keys.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads)
    attend_dkv(const AttentionOperands o, const HeadOperand dk, const HeadOperand dv) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.keys, Tile::rows, s.key_heads);
  const std::int64_t b = place.batch, kh = place.head, group = s.heads / s.key_heads;
  const std::int64_t j0 = place.first + tiles.first_row;
  load_tile<D>(tiles.own0, Tile::rows, head_at<T>(o.k, b, kh), o.k, place.first, s.keys, s.d);
  load_tile<D>(tiles.own1, Tile::rows, head_at<T>(o.v, b, kh), o.v, place.first, s.keys, s.e);
  WarpSums<D> dk_sums, dv_sums;
  const Span seeing = queries_seeing(s, place.first, Tile::rows);
  for (std::int64_t h = kh * group; h < (kh + 1) * group; ++h) {
    for (std::int64_t i0 = seeing.begin; i0 < seeing.end; i0 += Tile::columns) {
      __syncthreads();
      load_tile<D>(tiles.other0, Tile::columns, head_at<T>(o.q, b, h), o.q, i0, s.tokens, s.d);
      load_tile<D>(tiles.other1, Tile::columns, head_at<T>(o.dy, b, h), o.dy, i0, s.tokens, s.e);
      __syncthreads();
      WarpSums<Tile::columns> scores, errors;
      tiles.multiply(scores, errors);
      TIDEMARK_UNROLL
      for (int piece = 0; piece < Tile::columns / 8; ++piece) {
        TIDEMARK_UNROLL
        for (int k = 0; k < 4; ++k) {
          const WeightAndError found =
              weigh(o, b, h, i0 + errors.column(piece, k), j0 + errors.row(k), scores.of[piece][k],
                    errors.of[piece][k]);
          scores.of[piece][k] = found.weight, errors.of[piece][k] = found.error;
        }
      }
      store_rounded(tiles.weights, scores);
      __syncwarp();
      add_product(dv_sums, tiles.weights, tiles.other1, Tile::columns);
      __syncwarp();
      store_rounded(tiles.weights, errors);
      __syncwarp();
      add_product(dk_sums, tiles.weights, tiles.other0, Tile::columns);
    }
  }
  if (dk.data != nullptr) write_rows(dk, b, kh, j0, s.keys, s.d, dk_sums, s.scale);
  if (dv.data != nullptr) write_rows(dv, b, kh, j0, s.keys, s.e, dv_sums, 1);
}

/// dbias [bias batches, bias heads, tokens, keys] = Σ dS over what shares it: a block per tile of
/// it. Only where a bias wants a gradient, as in Swin.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads)
    attend_dbias(const AttentionOperands o, const HeadOperand dbias) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const std::int64_t key_tiles = (s.keys + Tile::columns - 1) / Tile::columns;
  const BlockPlace place = block_place(s.tokens, Tile::rows, key_tiles);
  const std::int64_t j0 = place.head * Tile::columns, i0 = place.first + tiles.first_row;
  const std::int64_t bias_head = place.batch % o.bias.heads,
                     bias_batch = place.batch / o.bias.heads;
  WarpSums<Tile::columns> sums;
  for (std::int64_t b = bias_batch; b < s.batches; b += o.bias.batches) {
    for (std::int64_t h = bias_head; h < s.heads; h += o.bias.heads) {
      const std::int64_t kh = h / (s.heads / s.key_heads);
      __syncthreads();
      load_tile<D>(tiles.own0, Tile::rows, head_at<T>(o.q, b, h), o.q, place.first, s.tokens, s.d);
      load_tile<D>(tiles.own1, Tile::rows, head_at<T>(o.dy, b, h), o.dy, place.first, s.tokens,
                   s.e);
      load_tile<D>(tiles.other0, Tile::columns, head_at<T>(o.k, b, kh), o.k, j0, s.keys, s.d);
      load_tile<D>(tiles.other1, Tile::columns, head_at<T>(o.v, b, kh), o.v, j0, s.keys, s.e);
      __syncthreads();
      WarpSums<Tile::columns> scores, errors;
      tiles.multiply(scores, errors);
      TIDEMARK_UNROLL
      for (int piece = 0; piece < Tile::columns / 8; ++piece) {
        TIDEMARK_UNROLL
        for (int k = 0; k < 4; ++k)
          sums.of[piece][k] += weigh(o, b, h, i0 + sums.row(k), j0 + sums.column(piece, k),
                                     scores.of[piece][k], errors.of[piece][k])
                                   .error;
      }
    }
  }
  const Writer<AnyFloat> writer{dbias.data, dbias.dtype};
  for_elements(sums, [&](int row, int column, float value) {
    const std::int64_t i = i0 + row, j = j0 + column;
    if (i < s.tokens && j < s.keys)
      store_one(
          writer,
          bias_batch * dbias.batch + bias_head * dbias.head + i * dbias.token + j * dbias.channel,
          value);
  });
}

}  // namespace tidemark::cuda
