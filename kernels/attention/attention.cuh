// Attention on the GPU. Each kernel has a block per tile of rows; a warp owns 16 of them. Tiles of
// the other side pass through shared memory one after the other, so nothing of the size of the
// scores is ever stored; where it has room for two, the next one arrives while one is worked on.
#pragma once

#include <cmath>

#include "kernels/attention/warp_product.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/vector_io.cuh"

namespace tidemark::cuda {

/// Rows that a block owns, and columns that pass by; sized so that the largest kernel (keys and
/// values, two operands each, and the weights) stays below 64 KiB of shared memory, what devices of
/// capability 7.5 have, with one stage of what passes by.
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
  /// A last tile of so few columns is worked on as one of that many.
  static constexpr int few_columns = is_wide ? 8 : 16;
  /// Two operands' tiles, and two numbers per column.
  static constexpr int stage_bytes =
      2 * columns * pitch * static_cast<int>(sizeof(T)) + 2 * columns * 4;
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
  __device__ static TileRange within(int begin, int end, int count) {
    const auto clamped = [&](int x) { return x < 0 ? 0 : x > count ? count : x; };
    return {clamped(begin), clamped(end)};
  }
  __device__ bool has(int column) const { return column >= begin && column < end; }
};

/// Positions are of 32 bits: kernels have too few registers for more.
struct AttentionShape {
  int batches, heads, key_heads, tokens, keys;
  int window;  ///< 0: none, else no more than `most`, which no distance exceeds
  int d, e;
  float scale;
  bool causal;

  static constexpr int most = 1 << 30;

  /// Of the `count` keys from j0 on, those that query i sees.
  __device__ TileRange keys_of_query(int i, int j0, int count) const {
    const int begin = window > 0 ? i - window + 1 : 0;
    const int end = causal && i + 1 < keys ? i + 1 : keys;
    return TileRange::within(begin - j0, i < tokens ? end - j0 : 0, count);
  }
  /// Of the `count` queries from i0 on, those that see key j.
  __device__ TileRange queries_of_key(int j, int i0, int count) const {
    const int begin = causal ? j : 0;
    const int end = window > 0 && j + window < tokens ? j + window : tokens;
    return TileRange::within(begin - i0, j < keys ? end - i0 : 0, count);
  }
  /// All of them exist, and each query sees each key: most tiles need not ask element by element.
  __device__ bool all_seen(int i0, int queries, int j0, int columns) const {
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
  int begin, end;
};
__device__ inline Span keys_seen(const AttentionShape& s, int first, int count) {
  const int last = (first + count < s.tokens ? first + count : s.tokens) - 1;
  const int begin = s.window > 0 && first - s.window + 1 > 0 ? first - s.window + 1 : 0;
  return {begin, s.causal && last + 1 < s.keys ? last + 1 : s.keys};
}
__device__ inline Span queries_seeing(const AttentionShape& s, int first, int count) {
  const int last = (first + count < s.keys ? first + count : s.keys) - 1;
  const int end = s.window > 0 ? last + s.window : s.tokens;
  return {s.causal ? first : 0, end < s.tokens ? end : s.tokens};
}

template <typename T>
__device__ inline const T* head_at(const HeadOperand& x, int b, int h) {
  return reinterpret_cast<const T*>(x.data) + b * x.batch + h * x.head;
}

/// `count` rows from `first` on, by all `threads` of the block; beyond `end` and `width` zeros.
/// They are there when the group of copies is, and behind a barrier.
template <int count, int D, int threads, typename T>
__device__ inline void load_tile(SharedMatrix<T> tile, const T* from, const HeadOperand& x,
                                 int first, int end, int width) {
  constexpr int V = 16 / sizeof(T), vectors = D / V;
  const int thread = static_cast<int>(threadIdx.x);
  const T* const begin = from + first * x.token;
  if (x.has_vectors) {
    TIDEMARK_UNROLL
    for (int pass = 0; pass < count * vectors; pass += threads) {
      const int i = pass + thread, row = i / vectors, column = i % vectors * V;
      if (count * vectors % threads != 0 && i >= count * vectors) break;
      copy_async(tile.row(row) + column, begin + row * x.token + column,
                 first + row < end && column < width);
    }
    return;
  }
  TIDEMARK_NO_UNROLL
  for (int i = thread; i < count * D; i += threads) {
    const int row = i / D, column = i % D;
    tile.row(row)[column] =
        first + row < end && column < width ? begin[row * x.token + column * x.channel] : T{};
  }
}

/// What passes by: two operands' tiles, and two numbers of each of their rows.
template <typename T, int D>
struct PassingTiles {
  using Tile = AttentionTile<T, D>;
  SharedMatrix<T> first, second;
  float *lse, *dots;

  /// `stages` begin behind what else is in shared memory.
  __device__ PassingTiles(T* stages, int stage)
      : first{stages + stage * (Tile::stage_bytes / static_cast<int>(sizeof(T))), Tile::pitch},
        second{first.row(Tile::columns), Tile::pitch},
        lse(reinterpret_cast<float*>(second.row(Tile::columns))),
        dots(lse + Tile::columns) {}
};

/// So many columns of a tile are worked on.
template <int N>
struct TileWidth {};

/// Loads the tiles [begin, end) one after the other by load(tiles, first) and calls
/// work(TileWidth<N>, tiles, first) for each. With two stages the next one arrives meanwhile.
template <typename T, int D, typename Load, typename Work>
__device__ inline void for_tiles(T* stages, int stage_count, int begin, int end, Load&& load,
                                 Work&& work) {
  using Tile = AttentionTile<T, D>;
  if (begin >= end) {  // what is on its way must not overwrite what is written next
    end_group();
    wait_for_groups<0>();
    __syncthreads();
    return;
  }
  int stage = 0;
  load(PassingTiles<T, D>(stages, 0), begin);
  end_group();
  TIDEMARK_NO_UNROLL
  for (int first = begin; first < end; first += Tile::columns) {
    const int next = first + Tile::columns;
    if (stage_count > 1 && next < end) {
      load(PassingTiles<T, D>(stages, stage ^ 1), next);
      end_group();
      wait_for_groups<1>();
    } else {
      wait_for_groups<0>();
    }
    __syncthreads();
    const PassingTiles<T, D> tiles(stages, stage);
    if (Tile::few_columns < Tile::columns && end - first <= Tile::few_columns)
      work(TileWidth<Tile::few_columns>{}, tiles, first);
    else
      work(TileWidth<Tile::columns>{}, tiles, first);
    __syncthreads();  // all have read
    if (stage_count > 1) {
      stage ^= 1;
    } else if (next < end) {
      load(PassingTiles<T, D>(stages, 0), next);
      end_group();
    }
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

/// What one head adds to its scores. The strides stay in the kernel's parameters, which take no
/// registers.
struct HeadBias {
  const float* data;
  const BiasOperand& operand;

  __device__ HeadBias(const BiasOperand& bias, int b, int h) : data(bias.data), operand(bias) {
    if (data != nullptr) data += b % bias.batches * bias.batch + h % bias.heads * bias.head;
  }
  __device__ float at(int i, int j) const {
    return data == nullptr ? 0 : by_powers_of_2(data[i * operand.row + j * operand.column]);
  }
};

/// From products of 16 rows with columns to scores: queries and keys, or with `swapped` keys and
/// queries, from i0 and j0 on. −∞ where the one does not see the other.
template <bool swapped, int N>
__device__ inline void finish_scores(WarpSums<N>& scores, const AttentionShape& s,
                                     const HeadBias& bias, int i0, int j0) {
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

/// factor · sums of the warp's rows, to memory, by way of `space`, which nobody else uses: 16 rows
/// in shared memory. Results are of the operands' dtype, unless dtypes are mixed, and then operands
/// are fp32.
template <typename T, int D>
__device__ inline void write_rows(const HeadOperand& x, int b, int h, int first, int end, int width,
                                  WarpSums<D>& sums, float factor, SharedMatrix<T> space) {
  const std::int64_t start = b * x.batch + h * x.head + first * x.token;
  if (x.has_vectors && (sizeof(T) == 2 || x.dtype == DType::Float32)) {
    constexpr int V = 16 / sizeof(T), vectors = D / V;
    __syncwarp();  // what was there has been read
    for_elements(sums, [&](int row, int column, float value) {
      space.row(row)[column] = rounded_to<T>(value * factor);
    });
    __syncwarp();
    T* const to = reinterpret_cast<T*>(x.data) + start;
    for (int i = static_cast<int>(threadIdx.x % warp_size); i < 16 * vectors; i += warp_size) {
      const int row = i / vectors, column = i % vectors * V;
      if (first + row < end && column < width)
        *reinterpret_cast<Pack<T, V>*>(to + row * x.token + column) =
            *reinterpret_cast<const Pack<T, V>*>(space.row(row) + column);
    }
    return;
  }
  const auto offset = [&](int row, int column) {
    return start + row * x.token + column * x.channel;
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
  int first, head, batch;
};
__device__ inline BlockPlace block_place(int tokens, int rows, int heads) {
  const int tiles = (tokens + rows - 1) / rows, block = static_cast<int>(blockIdx.x);
  return {block % tiles * rows, block / tiles % heads, block / tiles / heads};
}

template <typename T, int D>
struct ForwardTiles {
  using Tile = AttentionTile<T, D>;
  int first_row = static_cast<int>(threadIdx.x / warp_size) * 16;  ///< first: the others use it
  SharedMatrix<T> queries, weights;                                ///< the warp's own rows
  T* stages;

  __device__ explicit ForwardTiles(T* shared)
      : queries{shared + first_row * Tile::pitch, Tile::pitch},
        weights{shared + Tile::rows * Tile::pitch + first_row * Tile::weights_pitch,
                Tile::weights_pitch},
        stages(shared + own_elements) {}
  static constexpr int own_elements = Tile::rows * (Tile::pitch + Tile::weights_pitch);
  static constexpr std::size_t own_bytes = own_elements * sizeof(T);
};

/// Blocks that a multiprocessor is to hold: where a lane's sums are few.
template <typename T, int D>
inline constexpr int forward_blocks = sizeof(T) == 2 && D <= 64 ? 3 : 1;

template <typename T, int D>
__global__ void __launch_bounds__(AttentionTile<T, D>::threads, forward_blocks<T, D>)
    attend(const AttentionOperands o, int stages) {
  using Tile = AttentionTile<T, D>;
  TIDEMARK_SHARED(T, shared);
  const ForwardTiles<T, D> own(shared);
  const AttentionShape& s = o.shape;
  const BlockPlace place = block_place(s.tokens, Tile::rows, s.heads);
  const int b = place.batch, h = place.head, kh = h / (s.heads / s.key_heads);
  const int i0 = place.first + own.first_row;
  load_tile<Tile::rows, D, Tile::threads>(SharedMatrix<T>{shared, Tile::pitch},
                                          head_at<T>(o.q, b, h), o.q, place.first, s.tokens, s.d);

  WarpSums<D> sums;
  float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {};
  const HeadBias bias(o.bias, b, h);
  const T *const keys = head_at<T>(o.k, b, kh), *const values = head_at<T>(o.v, b, kh);
  const auto load = [&](const PassingTiles<T, D>& tiles, int j0) {
    load_tile<Tile::columns, D, Tile::threads>(tiles.first, keys, o.k, j0, s.keys, s.d);
    load_tile<Tile::columns, D, Tile::threads>(tiles.second, values, o.v, j0, s.keys, s.e);
  };
  const auto work = [&]<int N>(TileWidth<N>, const PassingTiles<T, D>& tiles, int j0) {
    if (i0 >= s.tokens) return;  // a warp without queries only helps to load
    WarpSums<N> scores;
    add_product_transposed(scores, own.queries, tiles.first, D);
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
    add_product_of_sums(sums, scores, own.weights, tiles.second);
  };
  const Span seen = keys_seen(s, place.first, Tile::rows);
  for_tiles<T, D>(own.stages, stages, seen.begin, seen.end, load, work);

  for (int half = 0; half < 2; ++half) {
    total[half] = sum_of_row(total[half]);
    const int i = i0 + sums.row(2 * half);
    if (o.lse != nullptr && i < s.tokens && threadIdx.x % 4 == 0)
      o.lse[std::int64_t{b * s.heads + h} * s.tokens + i] =
          maximum[half] * log_of_2 + logf(total[half]);
    total[half] = total[half] == 0 ? 0 : 1 / total[half];
  }
  for_elements(sums, [&](int row, int, float& x) { x *= total[row / 8]; });
  if (o.y.data != nullptr) write_rows<T>(o.y, b, h, i0, s.tokens, s.e, sums, 1, own.queries);
}

}  // namespace tidemark::cuda
