// Mesa's codes: minimum and maximum per group, unless they are known, the running range, then one
// pass from values to codes. Nothing waits for the host. Where the CPU kernel rounds after each
// operation this one does, too: equal ranges give equal codes.
#pragma once

#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/watch.cuh"
#include "kernels/dropout/dropout.cuh"

namespace tidemark::cuda {

inline constexpr float mesa_decay = 0.9f;  // of the running range, in the release's policies
inline constexpr float mesa_wrap_limit = 0x1p22f;  // beyond it adding 1.5·2^23 rounds no more

/// How a value, in row-major order, is divided into stretches of one group each; in vectors.
struct MesaGroups {
  Divisor stretch, count;
  __device__ std::int64_t group_of(std::int64_t vector) const {
    std::int64_t rest = vector;
    std::int64_t group = stretch.divide(rest);
    count.divide(group);
    return group;
  }
};

/// Vectors of a thread that are under way at once where arrays lie in one piece.
inline constexpr int mesa_vectors = 4;

/// Block (group, part): least and largest element of a part of the group's vectors.
template <typename T, int V>
__global__ void mesa_min_max_kernel(Reader<T> value, Walk<2> walk, MesaGroups groups,
                                    std::int64_t per_group, std::int64_t per_part,
                                    GroupRange* ranges) {
  const std::int64_t group = blockIdx.x, begin = std::int64_t{blockIdx.y} * per_part;
  const std::int64_t end = begin + per_part < per_group ? begin + per_part : per_group;
  float least = INFINITY, most = -INFINITY;
  const auto vector = [&](std::int64_t k) {  // the group's k-th
    const std::int64_t stretch = groups.stretch.divide(k);
    return (stretch * groups.count.value + group) * groups.stretch.value + k;
  };
  std::int64_t k = begin + threadIdx.x;
  if constexpr (V > 1 && !std::is_same_v<T, AnyFloat>) {
    if (walk.rank == 0 && walk.inner_stride[0] == 1) {
      const auto* const from = reinterpret_cast<const Pack<T, V>*>(value.data);
      for (; k + (mesa_vectors - 1) * std::int64_t{blockDim.x} < end;
           k += mesa_vectors * std::int64_t{blockDim.x}) {
        Pack<T, V> packs[mesa_vectors];
        TIDEMARK_UNROLL
        for (int u = 0; u < mesa_vectors; ++u)
          packs[u] = from[vector(k + u * std::int64_t{blockDim.x})];
        TIDEMARK_UNROLL
        for (int u = 0; u < mesa_vectors; ++u) {
          TIDEMARK_UNROLL
          for (int e = 0; e < V; ++e) {
            const float x = value_in(packs[u], e);
            least = min_or_nan(least, x), most = max_or_nan(most, x);
          }
        }
      }
    }
  }
  for (; k < end; k += blockDim.x) {
    const auto at = walk.template place<V>(vector(k));
    float x[V];
    load<V>(value, at.offset[0], walk.inner_stride[0], V, x);
    for (int e = 0; e < V; ++e) least = min_or_nan(least, x[e]), most = max_or_nan(most, x[e]);
  }
  least = block_reduce<Min>(least);
  most = block_reduce<Max>(most);
  if (threadIdx.x != 0) return;
  note_max(&ranges[group].least, order_key(-least));
  note_max(&ranges[group].most, order_key(most));
}

/// What becomes of extremes that have entered the running range.
enum class Noted : std::uint8_t { Forgotten, Kept };

/// Minimum and maximum enter the running range. Whoever noted them may have had more digits than
/// the value's dtype.
__global__ void mesa_range_kernel(std::int64_t groups, bool is_first, DType dtype, Noted noted,
                                  GroupRange* ranges) {
  for (std::int64_t g = thread_of_grid(); g < groups; g += threads_of_grid()) {
    GroupRange group = ranges[g];
    if ((group.least | group.most) == 0) continue;  // nothing was noted
    const float least = rounded_as(dtype, -number_of_key(group.least));
    const float range = rounded_as(dtype, number_of_key(group.most)) - least;
    const float minimum = range != range ? range : least;
    const auto running = [&](float old, float now) {
      return is_first ? now : __fadd_rn(__fmul_rn(mesa_decay, old), __fmul_rn(1 - mesa_decay, now));
    };
    group.range = running(group.range, range);
    group.minimum = running(group.minimum, minimum);
    if (noted == Noted::Forgotten) group.least = group.most = 0;
    ranges[g] = group;
  }
}

/// Before the first step's extremes are noted, nothing is.
__global__ void mesa_forget_kernel(std::int64_t groups, GroupRange* ranges) {
  for (std::int64_t g = thread_of_grid(); g < groups; g += threads_of_grid())
    ranges[g].least = ranges[g].most = 0;
}

/// As uniform_numbers(), cheaper and coarser.
template <int V>
__device__ inline void dither_numbers(std::uint64_t key, std::int64_t first, float (&out)[V]) {
  for (int e = 0; e < V; ++e) {
    const auto i = static_cast<std::uint64_t>(first + e);
    out[e] = dither_of(dither_word(key, i / 4), i);
  }
}

/// Walk: the value, the number of its element, which is the place of its code.
template <typename T, int V>
__global__ void mesa_quantize_kernel(Reader<T> value, std::uint8_t* codes, Walk<2> walk,
                                     MesaGroups groups, const GroupRange* ranges,
                                     RandomTensor random, float limit) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    const GroupRange group = ranges[groups.group_of(i)];
    const float scale = code_levels(8) / group.range;
    float x[V], uniform[V];
    std::uint8_t code[V];
    load<V>(value, at.offset[0], walk.inner_stride[0], V, x);
    uniform_numbers<V>(random, at.offset[1], uniform);
    for (int e = 0; e < V; ++e) code[e] = mesa_code(x[e], group.minimum, scale, uniform[e], limit);
    store_bytes<V>(codes, at.offset[1], 1, V, code);
  }
}

/// The same of a value that lies in one piece: two vectors of a thread are under way.
template <typename T>
__global__ void mesa_dense_quantize_kernel(const T* value, std::uint8_t* codes,
                                           std::int64_t vectors, MesaGroups groups,
                                           const GroupRange* ranges, RandomTensor random,
                                           float limit) {
  constexpr int V = vector_size<T>, each = 2;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * each;
  std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * each + threadIdx.x;
  for (; first < vectors; first += step) {
    Pack<T, V> in[each] = {};
    GroupRange group[each];
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      in[u] = reinterpret_cast<const Pack<T, V>*>(value)[i];
      group[u] = ranges[groups.group_of(i)];
    }
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      const float scale = code_levels(8) / group[u].range;
      float uniform[V];
      uniform_numbers<V>(random, i * V, uniform);
      Pack<std::uint8_t, V> out;
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e)
        out.values[e] = mesa_code(value_in(in[u], e), group[u].minimum, scale, uniform[e], limit);
      reinterpret_cast<Pack<std::uint8_t, V>*>(codes)[i] = out;
    }
  }
}

/// Codes of a byte that lie in one piece, to values that do.
template <typename T>
__global__ void mesa_dense_dequantize_kernel(const std::uint8_t* codes, T* value,
                                             std::int64_t vectors, MesaGroups groups,
                                             const GroupRange* ranges) {
  constexpr int V = vector_size<T>, each = mesa_vectors;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * each;
  std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * each + threadIdx.x;
  for (; first < vectors; first += step) {
    Pack<std::uint8_t, V> in[each] = {};
    GroupRange group[each];
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      in[u] = reinterpret_cast<const Pack<std::uint8_t, V>*>(codes)[i];
      group[u] = ranges[groups.group_of(i)];
    }
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      float out[V];
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) out[e] = decoded(in[u].values[e], group[u], 8);
      reinterpret_cast<Pack<T, V>*>(value)[i] = packed<T>(out);
    }
  }
}

/// One pass: codes by the last step's range, extremes for the next. Walk as above.
template <typename T, int V>
__global__ void mesa_delayed_kernel(Reader<T> value, Walk<2> walk, DeviceGroups groups) {
  __shared__ BlockExtremes extremes;
  Watch watch(groups, extremes);
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    float x[V];
    load<V>(value, at.offset[0], walk.inner_stride[0], V, x);
    watch.note(at.offset[1], 1, V, x);
  }
  watch.finish();
}

/// Codes of 2 or 4 bits: each thread fills whole bytes, whose elements may belong to two groups.
/// Walk: the value, one element at a time.
template <typename T, int bits>
__global__ void mesa_pack_kernel(Reader<T> value, std::uint8_t* codes, std::int64_t elements,
                                 Walk<2> walk, MesaGroups groups, const GroupRange* ranges,
                                 RandomTensor random, bool is_dithered, float limit) {
  constexpr int per_byte = 8 / bits;
  constexpr unsigned mask = (1u << bits) - 1;
  const std::int64_t bytes = (elements + per_byte - 1) / per_byte;
  for (std::int64_t i = thread_of_grid(); i < bytes; i += threads_of_grid()) {
    float uniform[per_byte];
    if (is_dithered)
      dither_numbers<per_byte>(random.key, i * per_byte, uniform);
    else
      uniform_numbers<per_byte>(random, i * per_byte, uniform);
    unsigned packed = 0;
    TIDEMARK_UNROLL
    for (int e = 0; e < per_byte; ++e) {
      const std::int64_t element = i * per_byte + e;
      if (element >= elements) break;
      const GroupRange group = ranges[groups.group_of(element)];
      const float x = load_one(value, walk.template place<1>(element).offset[0]);
      const float scale = code_levels(bits) / group.range;
      const unsigned code = mesa_code(x, group.minimum, scale, uniform[e], limit) & mask;
      packed |= code << (e * bits);
    }
    codes[i] = static_cast<std::uint8_t>(packed);
  }
}

}  // namespace tidemark::cuda
