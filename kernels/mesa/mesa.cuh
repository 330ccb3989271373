// Mesa's codes: minimum and maximum per group, unless they are known, the running range, then one
// pass from values to codes. Nothing waits for the host. Where the CPU kernel rounds after each
// operation this one does, too: equal ranges give equal codes.
#pragma once

#include "kernels/cuda/own_group.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/dropout/dropout.cuh"
#include "kernels/stochastic_rounding.h"

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

/// rounding_at() of elements first, first + 1, …, whose first is a multiple of V.
template <int V>
__device__ inline void rounding_numbers(const RandomTensor& random, std::int64_t first,
                                        float (&out)[V]) {
  static_assert(8 % V == 0);
  const auto i = static_cast<std::uint64_t>(first);
  const PhiloxBlock block = philox<rounding_rounds>(random.key, i / 8, random.stream);
  if constexpr (V == 8) {
    TIDEMARK_UNROLL
    for (unsigned e = 0; e < V; ++e) out[e] = rounding_of(rounding_bits(block, e));
  } else {  // chosen, not indexed: an index would put the block into slow local memory
    const bool is_upper = (i & 4) != 0;
    const std::uint32_t low = is_upper ? block.word[2] : block.word[0];
    const std::uint32_t high = is_upper ? block.word[3] : block.word[1];
    const PhiloxBlock half{{(i & 2) != 0 && V < 4 ? high : low, high, 0, 0}};
    TIDEMARK_UNROLL
    for (unsigned e = 0; e < V; ++e)
      out[e] = rounding_of(rounding_bits(half, V == 1 ? static_cast<unsigned>(i & 1) : e));
  }
}

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
  for (std::int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
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

/// As rounding_numbers(), cheaper and coarser.
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
    const Encoder encoder(ranges[groups.group_of(i)], code_levels(8), limit);
    float x[V], offsets[V];
    std::uint8_t code[V];
    load<V>(value, at.offset[0], walk.inner_stride[0], V, x);
    rounding_numbers<V>(random, at.offset[1], offsets);
    for (int e = 0; e < V; ++e) code[e] = static_cast<std::uint8_t>(encoder(x[e], offsets[e]));
    store_bytes<V>(codes, at.offset[1], 1, V, code);
  }
}

/// The same of a value that lies in one piece.
template <typename T>
__global__ void mesa_dense_quantize_kernel(const T* value, DeviceGroups groups, std::uint8_t* codes,
                                           std::int64_t vectors, RandomTensor random, float limit) {
  constexpr int V = vector_size<T>;
  if (thread_of_grid() >= vectors) return;
  const Encoder encoder(groups.range_at(thread_of_grid() * V), code_levels(8), limit);
  Pack<T, V> in[1];
  for_own_vectors<1>(
      vectors,
      [&](std::int64_t i, int u) { in[u] = reinterpret_cast<const Pack<T, V>*>(value)[i]; },
      [&](std::int64_t i, int u) {
        float x[V], offsets[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) x[e] = value_in(in[u], e);
        rounding_numbers<V>(random, i * V, offsets);
        reinterpret_cast<Pack<std::uint8_t, V>*>(codes)[i] =
            encoded<V>(encoder, x, [&](int e) { return offsets[e]; });
      });
}

/// Codes of a byte that lie in one piece, to values that do.
template <typename T>
__global__ void mesa_dense_dequantize_kernel(DeviceGroups codes, T* value, std::int64_t vectors) {
  constexpr int V = vector_size<T>, each = 2;
  if (thread_of_grid() >= vectors) return;
  const Decoder decoder(codes.range_at(thread_of_grid() * V), 8);
  const auto* const from =
      reinterpret_cast<const Pack<std::uint8_t, V>*>(codes.codes + codes.first);
  Pack<std::uint8_t, V> in[each];
  for_own_vectors<each>(
      vectors, [&](std::int64_t i, int u) { in[u] = from[i]; },
      [&](std::int64_t i, int u) {
        float out[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) out[e] = decoder(number_in(in[u], e));
        reinterpret_cast<Pack<T, V>*>(value)[i] = packed<T>(out);
      });
}

/// Extremes of a value in one piece, and its codes if `groups` say where.
template <typename T>
__global__ void __launch_bounds__(watching_threads, watching_resident)
    mesa_dense_watch_kernel(const T* value, DeviceGroups groups, std::int64_t vectors) {
  constexpr int V = vector_size<T>, each = 2;
  __shared__ BlockExtremes extremes;
  Watch watch(groups, extremes);
  if (thread_of_grid() < vectors) watch.stay_at(thread_of_grid() * V);
  Pack<T, V> in[each];
  for_own_vectors<each>(
      vectors,
      [&](std::int64_t i, int u) { in[u] = reinterpret_cast<const Pack<T, V>*>(value)[i]; },
      [&](std::int64_t i, int u) {
        float x[V];
        TIDEMARK_UNROLL
        for (int e = 0; e < V; ++e) x[e] = value_in(in[u], e);
        watch.note_there(i * V, x);
      });
  watch.finish();
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
    float offsets[per_byte];
    if (is_dithered)
      dither_numbers<per_byte>(random.key, i * per_byte, offsets);
    else
      rounding_numbers<per_byte>(random, i * per_byte, offsets);
    unsigned packed = 0;
    TIDEMARK_UNROLL
    for (int e = 0; e < per_byte; ++e) {
      const std::int64_t element = i * per_byte + e;
      if (element >= elements) break;
      const Encoder encoder(ranges[groups.group_of(element)], code_levels(bits), limit);
      const float x = load_one(value, walk.template place<1>(element).offset[0]);
      packed |= (encoder(x, offsets[e]) & mask) << (e * bits);
    }
    codes[i] = static_cast<std::uint8_t>(packed);
  }
}

}  // namespace tidemark::cuda
