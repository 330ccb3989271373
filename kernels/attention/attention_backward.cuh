// The backward of attention has one kernel per gradient, each of which computes the weights again:
// nothing is added by atomics, so that equal inputs give equal bits.
#pragma once

#include "kernels/attention/attention.cuh"

namespace tidemark::cuda {

/// dots = Σ dy · y per row: a warp for 32 / lanes of them, each lane 16 bytes at a time of both.
template <typename T>
__global__ void dot_rows(const AttentionOperands o, std::int64_t rows, int lanes) {
  constexpr int V = 16 / sizeof(T);
  const AttentionShape& s = o.shape;
  const std::int64_t row = thread_of_grid() / lanes;
  const bool exists = row < rows;
  float sum = 0;
  if (exists) {
    const int i = static_cast<int>(row % s.tokens);
    const int h = static_cast<int>(row / s.tokens % s.heads);
    const int b = static_cast<int>(row / s.tokens / s.heads);
    const T* dy = head_at<T>(o.dy, b, h) + i * o.dy.token;
    const std::int64_t y = b * o.y.batch + h * o.y.head + i * o.y.token;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    if (o.dy.has_vectors && o.y.has_vectors && (sizeof(T) == 2 || o.y.dtype == DType::Float32)) {
      for (int c = lane * V; c < s.e; c += lanes * V) {
        const auto a = *reinterpret_cast<const Pack<T, V>*>(dy + c);
        const auto x =
            *reinterpret_cast<const Pack<T, V>*>(reinterpret_cast<const T*>(o.y.data) + y + c);
        TIDEMARK_UNROLL
        for (int k = 0; k < V; ++k) sum += to_fp32(a.values[k]) * to_fp32(x.values[k]);
      }
    } else {
      const Reader<AnyFloat> any{o.y.data, o.y.dtype};
      for (int c = lane; c < s.e; c += lanes)
        sum += to_fp32(dy[c * o.dy.channel]) * load_one(any, y + c * o.y.channel);
    }
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(whole_warp, sum, distance);
  if (exists && static_cast<int>(threadIdx.x) % lanes == 0) o.dots[row] = sum;
}

/// What a query's weights and their errors are relative to. Where it sees nothing, or does not
/// exist, all weights are 0.
struct QueryNumbers {
  float lse = INFINITY;  ///< by powers of two
  float dot = 0;
};

struct HeadNumbers {
  const float *lse, *dots;
  int tokens;

  __device__ HeadNumbers(const AttentionOperands& o, int b, int h)
      : lse(o.lse + std::int64_t{b * o.shape.heads + h} * o.shape.tokens),
        dots(o.dots + std::int64_t{b * o.shape.heads + h} * o.shape.tokens),
        tokens(o.shape.tokens) {}
  __device__ QueryNumbers of(int i) const {
    if (i >= tokens || lse[i] == -INFINITY) return {};
    return {by_powers_of_2(lse[i]), dots[i]};
  }
};

/// From a score and dy · v to the error of the weight's logarithm.
__device__ inline float error_of(float score, float d_weight, const QueryNumbers& query) {
  return power_of_2(score - query.lse) * (d_weight - query.dot);
}
/// The same for all elements of `errors`, which holds dy · v, of two rows of queries per lane.
template <int N>
__device__ inline void find_errors(const WarpSums<N>& scores, WarpSums<N>& errors,
                                   const QueryNumbers (&queries)[2]) {
  TIDEMARK_UNROLL
  for (int piece = 0; piece < N / 8; ++piece) {
    TIDEMARK_UNROLL
    for (int k = 0; k < 4; ++k)
      errors.of[piece][k] = error_of(scores.of[piece][k], errors.of[piece][k], queries[k / 2]);
  }
}

/// Of two rows of keys per lane; the scores become weights.
template <int N>
__device__ inline void find_errors_and_weights(WarpSums<N>& scores, WarpSums<N>& errors,
                                               const float* lse, const float* dots) {
  TIDEMARK_UNROLL
  for (int piece = 0; piece < N / 8; ++piece) {
    TIDEMARK_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int i = scores.column(piece, k);
      float& weight = scores.of[piece][k];
      weight = power_of_2(weight - lse[i]);
      errors.of[piece][k] = weight * (errors.of[piece][k] - dots[i]);
    }
  }
}

/// Where the backward's kernels keep their operands: two of the block's rows, and what passes by.
template <typename T, int D>
struct BackwardTiles {
  using Tile = AttentionTile<T, D>;
  int first_row = static_cast<int>(threadIdx.x / warp_size) * 16;  ///< first: the others use it
  SharedMatrix<T> all0, all1;                                      ///< of all warps
  SharedMatrix<T> own0, own1, weights;                             ///< the warp's own rows
  T* stages;

  __device__ explicit BackwardTiles(T* shared)
      : all0{shared, Tile::pitch},
        all1{all0.row(Tile::rows), Tile::pitch},
        own0{all0.row(first_row), Tile::pitch},
        own1{all1.row(first_row), Tile::pitch},
        weights{all1.row(Tile::rows) + first_row * Tile::weights_pitch, Tile::weights_pitch},
        stages(shared + own_elements) {}
  static constexpr int own_elements = Tile::rows * (2 * Tile::pitch + Tile::weights_pitch);
  static constexpr std::size_t own_bytes = own_elements * sizeof(T);

  /// products = own0 · firstᵀ, d_weights = own1 · secondᵀ where wanted, for the warp's rows.
  template <bool wants_d_weights = true, int N>
  __device__ void multiply(const PassingTiles<T, D>& passing, WarpSums<N>& products,
                           WarpSums<N>& d_weights) const {
    add_product_transposed(products, own0, passing.first, D);
    if constexpr (wants_d_weights) add_product_transposed(d_weights, own1, passing.second, D);
  }
};

/// As forward_blocks.
template <typename T, int D>
inline constexpr int backward_blocks = sizeof(T) == 2 && D <= 32 ? 3 : 1;

/// dq = dS · k / √d: a block per tile of queries.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, backward_blocks<T, D>)
    attend_dq(const AttentionOperands o, const HeadOperand dq, int stages) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.tokens, Tile::rows, s.heads);
  const int b = place.batch, h = place.head, kh = h / (s.heads / s.key_heads);
  const int i0 = place.first + tiles.first_row;
  load_tile<Tile::rows, D, Tile::threads>(tiles.all0, head_at<T>(o.q, b, h), o.q, place.first,
                                          s.tokens, s.d);
  load_tile<Tile::rows, D, Tile::threads>(tiles.all1, head_at<T>(o.dy, b, h), o.dy, place.first,
                                          s.tokens, s.e);
  WarpSums<D> sums;
  const HeadBias bias(o.bias, b, h);
  const HeadNumbers numbers(o, b, h);
  const QueryNumbers queries[2] = {numbers.of(i0 + sums.row(0)), numbers.of(i0 + sums.row(2))};
  const T *const keys = head_at<T>(o.k, b, kh), *const values = head_at<T>(o.v, b, kh);
  const auto load = [&](const PassingTiles<T, D>& passing, int j0) {
    load_tile<Tile::columns, D, Tile::threads>(passing.first, keys, o.k, j0, s.keys, s.d);
    load_tile<Tile::columns, D, Tile::threads>(passing.second, values, o.v, j0, s.keys, s.e);
  };
  const auto work = [&]<int N>(TileWidth<N>, const PassingTiles<T, D>& passing, int j0) {
    if (i0 >= s.tokens) return;  // a warp without queries only helps to load
    WarpSums<N> scores, errors;
    tiles.multiply(passing, scores, errors);
    finish_scores<false>(scores, s, bias, i0, j0);
    find_errors(scores, errors, queries);
    add_product_of_sums(sums, errors, tiles.weights, passing.first);
  };
  const Span seen = keys_seen(s, place.first, Tile::rows);
  for_tiles<T, D>(tiles.stages, stages, seen.begin, seen.end, load, work);
  write_rows<T>(dq, b, h, i0, s.tokens, s.d, sums, s.scale, tiles.own0);
}

enum class KeyGradients : std::uint8_t { Both, OfKeys, OfValues };
/// A lane's sums of one of the two are D / 2 registers, and a thread has 255: heads of 256 channels
/// pass twice.
template <int D>
inline constexpr bool both_gradients_fit = D <= 128;

/// dk = dSᵀ · q / √d and dv = Pᵀ · dy: a block per tile of keys, over the query heads that share
/// them. Scores are computed transposed, so that a warp owns keys.
template <typename T, int D, KeyGradients gradients>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, backward_blocks<T, D>)
    attend_dkv(const AttentionOperands o, const HeadOperand dk, const HeadOperand dv, int stages) {
  using Tile = AttentionTile<T, D>;
  constexpr bool of_keys = gradients != KeyGradients::OfValues;
  constexpr bool of_values = gradients != KeyGradients::OfKeys;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.keys, Tile::rows, s.key_heads);
  const int b = place.batch, kh = place.head, group = s.heads / s.key_heads;
  const int j0 = place.first + tiles.first_row;
  load_tile<Tile::rows, D, Tile::threads>(tiles.all0, head_at<T>(o.k, b, kh), o.k, place.first,
                                          s.keys, s.d);
  if constexpr (of_keys)
    load_tile<Tile::rows, D, Tile::threads>(tiles.all1, head_at<T>(o.v, b, kh), o.v, place.first,
                                            s.keys, s.e);
  WarpSums<of_keys ? D : 8> dk_sums;
  WarpSums<of_values ? D : 8> dv_sums;
  const Span seeing = queries_seeing(s, place.first, Tile::rows);
  for (int h = kh * group; h < (kh + 1) * group; ++h) {
    const HeadBias bias(o.bias, b, h);
    const HeadNumbers numbers(o, b, h);
    const T *const q = head_at<T>(o.q, b, h), *const dy = head_at<T>(o.dy, b, h);
    const auto load = [&](const PassingTiles<T, D>& passing, int i0) {
      load_tile<Tile::columns, D, Tile::threads>(passing.first, q, o.q, i0, s.tokens, s.d);
      load_tile<Tile::columns, D, Tile::threads>(passing.second, dy, o.dy, i0, s.tokens, s.e);
      static_assert(Tile::columns <= Tile::threads);
      if (const int i = static_cast<int>(threadIdx.x); i < Tile::columns) {
        const QueryNumbers query = numbers.of(i0 + i);
        passing.lse[i] = query.lse, passing.dots[i] = query.dot;
      }
    };
    const auto work = [&]<int N>(TileWidth<N>, const PassingTiles<T, D>& passing, int i0) {
      if (j0 >= s.keys) return;  // a warp without keys only helps to load
      WarpSums<N> scores, errors;
      tiles.template multiply<of_keys>(passing, scores, errors);
      finish_scores<true>(scores, s, bias, i0, j0);
      if constexpr (of_keys)
        find_errors_and_weights(scores, errors, passing.lse, passing.dots);
      else
        for_elements(scores, [&](int, int i, float& x) { x = power_of_2(x - passing.lse[i]); });
      if constexpr (of_values) add_product_of_sums(dv_sums, scores, tiles.weights, passing.second);
      if constexpr (of_keys) add_product_of_sums(dk_sums, errors, tiles.weights, passing.first);
    };
    for_tiles<T, D>(tiles.stages, stages, seeing.begin, seeing.end, load, work);
  }
  if constexpr (of_keys)
    if (dk.data != nullptr) write_rows<T>(dk, b, kh, j0, s.keys, s.d, dk_sums, s.scale, tiles.own0);
  if constexpr (of_values)
    if (dv.data != nullptr) write_rows<T>(dv, b, kh, j0, s.keys, s.e, dv_sums, 1, tiles.own1);
}

/// dbias, dense [sums, bias heads, tokens, keys] = Σ dS over what shares it: a block per tile of
/// it. Sum i has the batches i, i + sums, …; `sums` is a multiple of the bias's own batches. Only
/// where a bias wants a gradient, as in Swin.
template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, 1)
    attend_dbias(const AttentionOperands o, int batch_sums, float* dbias) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const BackwardTiles<T, D> tiles(shared);
  const PassingTiles<T, D> passing(tiles.stages, 0);
  const AttentionShape& s = o.shape;
  const int key_tiles = (s.keys + Tile::columns - 1) / Tile::columns;
  const BlockPlace place = block_place(s.tokens, Tile::rows, key_tiles);
  const int j0 = place.head * Tile::columns, i0 = place.first + tiles.first_row;
  const int bias_heads = static_cast<int>(o.bias.heads);
  const int bias_head = place.batch % bias_heads, first_batch = place.batch / bias_heads;
  WarpSums<Tile::columns> sums;
  for (int b = first_batch; b < s.batches; b += batch_sums) {
    for (int h = bias_head; h < s.heads; h += bias_heads) {
      const int kh = h / (s.heads / s.key_heads);
      const HeadBias bias(o.bias, b, h);
      const HeadNumbers numbers(o, b, h);
      const QueryNumbers queries[2] = {numbers.of(i0 + sums.row(0)), numbers.of(i0 + sums.row(2))};
      __syncthreads();
      load_tile<Tile::rows, D, Tile::threads>(tiles.all0, head_at<T>(o.q, b, h), o.q, place.first,
                                              s.tokens, s.d);
      load_tile<Tile::rows, D, Tile::threads>(tiles.all1, head_at<T>(o.dy, b, h), o.dy, place.first,
                                              s.tokens, s.e);
      load_tile<Tile::columns, D, Tile::threads>(passing.first, head_at<T>(o.k, b, kh), o.k, j0,
                                                 s.keys, s.d);
      load_tile<Tile::columns, D, Tile::threads>(passing.second, head_at<T>(o.v, b, kh), o.v, j0,
                                                 s.keys, s.e);
      end_group();
      wait_for_groups<0>();
      __syncthreads();
      WarpSums<Tile::columns> scores, errors;
      tiles.multiply(passing, scores, errors);
      finish_scores<false>(scores, s, bias, i0, j0);
      find_errors(scores, errors, queries);
      TIDEMARK_UNROLL
      for (int piece = 0; piece < Tile::columns / 8; ++piece) {
        TIDEMARK_UNROLL
        for (int k = 0; k < 4; ++k) sums.of[piece][k] += errors.of[piece][k];
      }
    }
  }
  float* const rows = dbias + std::int64_t{place.batch} * s.tokens * s.keys;
  for_elements(sums, [&](int row, int column, float value) {
    const int i = i0 + row, j = j0 + column;
    if (i < s.tokens && j < s.keys) rows[std::int64_t{i} * s.keys + j] = value;
  });
}

}  // namespace tidemark::cuda
