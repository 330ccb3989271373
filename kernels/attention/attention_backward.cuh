// The backward of attention has one kernel per gradient, each of which computes the weights again:
// nothing is added by atomics, so that equal inputs give equal bits.
#pragma once

#include "kernels/attention/attention.cuh"

namespace tidemark::cuda {

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
struct Weigher {
  const AttentionShape& shape;
  const float *lse, *dots;  ///< of the head
  HeadBias bias;

  __device__ Weigher(const AttentionOperands& o, std::int64_t b, std::int64_t h)
      : shape(o.shape),
        lse(o.lse + (b * o.shape.heads + h) * o.shape.tokens),
        dots(o.dots + (b * o.shape.heads + h) * o.shape.tokens),
        bias(o.bias, b, h) {}
  __device__ WeightAndError operator()(std::int64_t i, std::int64_t j, float product,
                                       float d_weight) const {
    if (!shape.sees(i, j) || lse[i] == -INFINITY) return {0, 0};
    const float weight = expf(product * shape.scale + bias.at(i, j) - lse[i]);
    return {weight, weight * (d_weight - dots[i])};
  }
};

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

  /// products = own0 · other0ᵀ, d_weights = own1 · other1ᵀ where wanted, for the warp's rows.
  template <bool wants_d_weights = true>
  __device__ void multiply(WarpSums<Tile::columns>& products,
                           WarpSums<Tile::columns>& d_weights) const {
    add_product_transposed(products, SharedMatrix<T>{own0.row(first_row), Tile::pitch}, other0, D);
    if constexpr (wants_d_weights)
      add_product_transposed(d_weights, SharedMatrix<T>{own1.row(first_row), Tile::pitch}, other1,
                             D);
  }
};

/// dq = dS · k / √d: a block per tile of queries.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, 1)
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
  const Weigher weigh(o, b, h);
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
        errors.of[piece][k] = weigh(i0 + errors.row(k), j0 + errors.column(piece, k),
                                    scores.of[piece][k], errors.of[piece][k])
                                  .error;
    }
    store_rounded(tiles.weights, errors);
    __syncwarp();
    add_product(sums, tiles.weights, tiles.other0, Tile::columns);
  }
  write_rows<T>(dq, b, h, i0, s.tokens, s.d, sums, s.scale);
}

enum class KeyGradients : std::uint8_t { Both, OfKeys, OfValues };
/// A lane's sums of one of the two are D / 2 registers, and a thread has 255: heads of 256 channels
/// pass twice.
template <int D>
inline constexpr bool both_gradients_fit = D <= 128;

/// dk = dSᵀ · q / √d and dv = Pᵀ · dy: a block per tile of keys, over the query heads that share
/// them. Scores are computed transposed, so that a warp owns keys.
template <typename T, int D, KeyGradients gradients>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, 1)
    attend_dkv(const AttentionOperands o, const HeadOperand dk, const HeadOperand dv) {
  using Tile = AttentionTile<T, D>;
  constexpr bool of_keys = gradients != KeyGradients::OfValues;
  constexpr bool of_values = gradients != KeyGradients::OfKeys;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.keys, Tile::rows, s.key_heads);
  const std::int64_t b = place.batch, kh = place.head, group = s.heads / s.key_heads;
  const std::int64_t j0 = place.first + tiles.first_row;
  load_tile<D>(tiles.own0, Tile::rows, head_at<T>(o.k, b, kh), o.k, place.first, s.keys, s.d);
  if constexpr (of_keys)
    load_tile<D>(tiles.own1, Tile::rows, head_at<T>(o.v, b, kh), o.v, place.first, s.keys, s.e);
  WarpSums<of_keys ? D : 8> dk_sums;
  WarpSums<of_values ? D : 8> dv_sums;
  const Span seeing = queries_seeing(s, place.first, Tile::rows);
  for (std::int64_t h = kh * group; h < (kh + 1) * group; ++h) {
    const Weigher weigh(o, b, h);
    for (std::int64_t i0 = seeing.begin; i0 < seeing.end; i0 += Tile::columns) {
      __syncthreads();
      load_tile<D>(tiles.other0, Tile::columns, head_at<T>(o.q, b, h), o.q, i0, s.tokens, s.d);
      load_tile<D>(tiles.other1, Tile::columns, head_at<T>(o.dy, b, h), o.dy, i0, s.tokens, s.e);
      __syncthreads();
      WarpSums<Tile::columns> scores, errors;
      tiles.template multiply<of_keys>(scores, errors);
      TIDEMARK_UNROLL
      for (int piece = 0; piece < Tile::columns / 8; ++piece) {
        TIDEMARK_UNROLL
        for (int k = 0; k < 4; ++k) {
          const WeightAndError found = weigh(i0 + errors.column(piece, k), j0 + errors.row(k),
                                             scores.of[piece][k], errors.of[piece][k]);
          scores.of[piece][k] = found.weight, errors.of[piece][k] = found.error;
        }
      }
      if constexpr (of_values) {
        store_rounded(tiles.weights, scores);
        __syncwarp();
        add_product(dv_sums, tiles.weights, tiles.other1, Tile::columns);
        __syncwarp();
      }
      if constexpr (of_keys) {
        store_rounded(tiles.weights, errors);
        __syncwarp();
        add_product(dk_sums, tiles.weights, tiles.other0, Tile::columns);
      }
    }
  }
  if constexpr (of_keys)
    if (dk.data != nullptr) write_rows<T>(dk, b, kh, j0, s.keys, s.d, dk_sums, s.scale);
  if constexpr (of_values)
    if (dv.data != nullptr) write_rows<T>(dv, b, kh, j0, s.keys, s.e, dv_sums, 1);
}

/// dbias, dense [sums, bias heads, tokens, keys] = Σ dS over what shares it: a block per tile of
/// it. Sum i has the batches i, i + sums, …; `sums` is a multiple of the bias's own batches. Only
/// where a bias wants a gradient, as in Swin.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, 1)
    attend_dbias(const AttentionOperands o, std::int64_t batch_sums, float* dbias) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const std::int64_t key_tiles = (s.keys + Tile::columns - 1) / Tile::columns;
  const BlockPlace place = block_place(s.tokens, Tile::rows, key_tiles);
  const std::int64_t j0 = place.head * Tile::columns, i0 = place.first + tiles.first_row;
  const std::int64_t bias_head = place.batch % o.bias.heads,
                     first_batch = place.batch / o.bias.heads;
  WarpSums<Tile::columns> sums;
  for (std::int64_t b = first_batch; b < s.batches; b += batch_sums) {
    for (std::int64_t h = bias_head; h < s.heads; h += o.bias.heads) {
      const std::int64_t kh = h / (s.heads / s.key_heads);
      const Weigher weigh(o, b, h);
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
          sums.of[piece][k] += weigh(i0 + sums.row(k), j0 + sums.column(piece, k),
                                     scores.of[piece][k], errors.of[piece][k])
                                   .error;
      }
    }
  }
  float* const rows = dbias + place.batch * s.tokens * s.keys;
  for_elements(sums, [&](int row, int column, float value) {
    const std::int64_t i = i0 + row, j = j0 + column;
    if (i < s.tokens && j < s.keys) rows[i * s.keys + j] = value;
  });
}

}  // namespace tidemark::cuda
