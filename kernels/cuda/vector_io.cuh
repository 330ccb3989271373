// Reading and writing of elements in vectors of 16 bytes; all arithmetic between is in fp32.
#pragma once

#include "kernels/cuda/walk.cuh"
#include "kernels/dither.h"

namespace tidemark::cuda {

/// A dtype that is only known at run time: what ops of mixed dtypes use, and those whose arrays
/// have groups.
struct AnyFloat {};

template <typename T>
struct Reader {
  const T* data = nullptr;
};

/// Groups as a kernel finds them; `first` is the number of the array's own first element.
struct DeviceGroups {
  GroupRange* ranges = nullptr;
  std::int64_t first = 0;
  Divisor stretch, count;
  const std::uint8_t* codes = nullptr;  ///< of the storage's first element
  int bits = 8;
  std::uint8_t* written = nullptr;  ///< codes that whoever writes the values writes in passing
  std::uint64_t dither = 0;

  DeviceGroups() = default;
  explicit DeviceGroups(const Array& array) {
    if (!array.groups) return;
    ranges = array.groups.ranges;
    first = (array.data - array.groups.first) / size_of(array.dtype);
    stretch = Divisor(array.groups.stretch), count = Divisor(array.groups.count);
    codes = reinterpret_cast<const std::uint8_t*>(array.groups.first), bits = array.groups.bits;
    written = array.groups.codes, dither = array.groups.dither;
  }

  struct Group {
    int number;
    int left;  ///< elements of this stretch, from the one asked for on; of very many not all
  };
  __device__ Group at(std::int64_t offset) const {
    std::int64_t inside = first + offset;
    std::int64_t group = stretch.divide(inside);
    count.divide(group);
    const std::int64_t left = stretch.value - inside;
    return {static_cast<int>(group), left < 1 << 30 ? static_cast<int>(left) : 1 << 30};
  }
  __device__ GroupRange& range_at(std::int64_t offset) const { return ranges[at(offset).number]; }
};

template <>
struct Reader<AnyFloat> {
  const std::byte* data = nullptr;
  DType dtype = DType::Float32;
  DeviceGroups groups{};  ///< of codes
};
template <typename T>
struct Writer {
  T* data = nullptr;
};
template <>
struct Writer<AnyFloat> {
  std::byte* data = nullptr;
  DType dtype = DType::Float32;
  DeviceGroups groups{};  ///< whose minimum and maximum are noted
};

template <typename T>
Reader<T> reader(const Array& array) {
  if constexpr (std::is_same_v<T, AnyFloat>)
    return {array.data, array.dtype, DeviceGroups(array)};
  else
    return {elements<const T>(array)};
}
template <typename T>
Writer<T> writer(const Array& array) {
  if constexpr (std::is_same_v<T, AnyFloat>)
    return {array.data, array.dtype, DeviceGroups(array)};
  else
    return {elements<T>(array)};
}

/// Elements per thread: 16 bytes of the smallest.
template <typename T>
inline constexpr int vector_size = std::is_same_v<T, float> ? 4 : 8;

template <typename T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Pack {
  T values[V];
};

template <typename T, int V>
__device__ inline Pack<T, V> packed(const float (&values)[V]) {
  Pack<T, V> pack;
  if constexpr (sizeof(T) == 2 && V % 2 == 0) {
    TIDEMARK_UNROLL
    for (int i = 0; i < V; i += 2) round_pair(values[i], values[i + 1], pack.values + i);
  } else {
    TIDEMARK_UNROLL
    for (int i = 0; i < V; ++i) pack.values[i] = rounded_to<T>(values[i]);
  }
  return pack;
}

/// Element `e`, which is known at compile time, in fp32. Two of bfloat16 are looked at as the word
/// that they lie in: an instruction for each, and the vector stays in its four registers.
template <typename T, int V>
__device__ inline float value_in(const Pack<T, V>& pack, int e) {
  if constexpr (std::is_same_v<T, BFloat16> && V % 2 == 0) {
    std::uint32_t word;
    memcpy(&word, pack.values + e / 2 * 2, sizeof word);
    return format::float_of(e % 2 == 0 ? word << 16 : word & 0xffff0000u);
  } else {
    return to_fp32(pack.values[e]);
  }
}

/// V elements from `offset` on, of which `valid` exist; an absent array reads as zeros.
template <int V, typename T>
__device__ inline void load_of(const T* data, std::int64_t offset, std::int64_t stride, int valid,
                               float (&out)[V]) {
  if (stride == 1 && valid == V) {
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(data + offset);
    TIDEMARK_UNROLL
    for (int i = 0; i < V; ++i) out[i] = value_in(pack, i);
    return;
  }
  if (stride == 0) {
    const float value = to_fp32(data[offset]);
    for (int i = 0; i < V; ++i) out[i] = i < valid ? value : 0.0f;
    return;
  }
  for (int i = 0; i < V; ++i) out[i] = i < valid ? to_fp32(data[offset + i * stride]) : 0.0f;
}

/// Exact, as the last bits of 2^23 + code: conversions have an eighth of an addition's rate.
__device__ inline float number_of(std::uint8_t code) {
  return format::float_of(0x4b000000u | code) - 0x1p23f;
}
/// Code `e`, which is known at compile time, of a byte each.
template <int V>
__device__ inline float number_in(const Pack<std::uint8_t, V>& pack, int e) {
  static_assert(V % 4 == 0);
  std::uint32_t word;
  memcpy(&word, pack.values + e / 4 * 4, sizeof word);
  return format::float_of(byte_over(word, e % 4, 0x4b000000u)) - 0x1p23f;
}

/// From a group's codes, as numbers, to values.
struct Decoder {
  float factor = 0, minimum = 0;
  Decoder() = default;
  __device__ Decoder(const GroupRange& group, int bits)
      : factor(group.range / code_levels(bits)), minimum(group.minimum) {}
  __device__ float operator()(float number) const {
    return __fadd_rn(__fmul_rn(number, factor), minimum);
  }
};
__device__ inline float decoded(std::uint8_t code, const GroupRange& group, int bits) {
  return Decoder(group, bits)(number_of(code));
}

/// From values to a group's codes.
struct Encoder {
  float scale = 0, minimum = 0, limit = 0;
  __device__ Encoder(const GroupRange& group, float levels, float limit)
      : scale(levels / group.range), minimum(group.minimum), limit(limit) {}
  /// Of codes of a byte, clipped to it.
  __device__ Encoder(float scale, float minimum)
      : scale(scale), minimum(minimum), limit(code_levels(8)) {}
  /// The nearest integer in the lowest bits; 0 of NaN. `offset`: of rounding, or dither.
  __device__ std::uint32_t operator()(float x, float offset) const {
    constexpr float round = 12582912.0f;  // 1.5·2^23: the sum's last bits are the nearest integer
    const float level = __fadd_rn(__fmul_rn(x - minimum, scale), offset);
    return format::bits_of(fminf(fmaxf(level, 0.0f), limit) + round);
  }
};
/// `offset_of(e)` gives the offset of the e-th: made when it is needed, it takes a register, not V.
template <int V, typename Offset>
__device__ inline Pack<std::uint8_t, V> encoded(const Encoder& encoder, const float (&values)[V],
                                                const Offset& offset_of) {
  static_assert(V % 4 == 0);
  std::uint32_t words[V / 4];
  TIDEMARK_UNROLL
  for (int w = 0; w < V / 4; ++w) {
    std::uint32_t codes[4];
    TIDEMARK_UNROLL
    for (int e = 0; e < 4; ++e) codes[e] = encoder(values[4 * w + e], offset_of(4 * w + e));
    words[w] = lowest_bytes(codes[0], codes[1], codes[2], codes[3]);
  }
  Pack<std::uint8_t, V> pack;
  memcpy(&pack, words, sizeof pack);
  return pack;
}

/// The code of element `at`, which may be less than a byte. Neighbours find theirs in the same
/// cache line, if not byte.
__device__ inline std::uint8_t code_at(const DeviceGroups& groups, std::int64_t at) {
  if (groups.bits == 8) return groups.codes[groups.first + at];
  const std::int64_t bit = (groups.first + at) * groups.bits;
  const unsigned mask = (1u << groups.bits) - 1;
  return static_cast<std::uint8_t>(unsigned{groups.codes[bit / 8]} >> (bit % 8) & mask);
}

__device__ inline float element_at(const Reader<AnyFloat>& from, std::int64_t at) {
  if (from.dtype == DType::Float32) return reinterpret_cast<const float*>(from.data)[at];
  if (from.dtype == DType::BFloat16)
    return to_fp32(reinterpret_cast<const BFloat16*>(from.data)[at]);
  if (from.dtype == DType::UInt8)
    return decoded(code_at(from.groups, at), from.groups.range_at(at), from.groups.bits);
  return to_fp32(reinterpret_cast<const Float16*>(from.data)[at]);
}

/// V codes of one group, side by side.
template <int V>
__device__ inline void load_codes(const DeviceGroups& groups, const GroupRange& group,
                                  std::int64_t offset, float (&out)[V]) {
  if (groups.bits == 8) {
    const auto pack =
        *reinterpret_cast<const Pack<std::uint8_t, V>*>(groups.codes + groups.first + offset);
    const Decoder decoder(group, 8);
    for (int i = 0; i < V; ++i) out[i] = decoder(number_of(pack.values[i]));
    return;
  }
  for (int i = 0; i < V; ++i) out[i] = decoded(code_at(groups, offset + i), group, groups.bits);
}

/// Whole vectors of any dtype, and one element for all of V. False: nothing was loaded.
template <int V>
__device__ inline bool load_quickly(const Reader<AnyFloat>& from, std::int64_t offset,
                                    std::int64_t stride, int valid, float (&out)[V]) {
  if (stride == 0) {
    const float value = element_at(from, offset);
    for (int i = 0; i < V; ++i) out[i] = i < valid ? value : 0.0f;
    return true;
  }
  if (stride != 1 || valid != V) return false;
  if (from.dtype == DType::Float32) {
    load_of<V>(reinterpret_cast<const float*>(from.data), offset, 1, V, out);
  } else if (from.dtype == DType::BFloat16) {
    load_of<V>(reinterpret_cast<const BFloat16*>(from.data), offset, 1, V, out);
  } else if (from.dtype == DType::Float16) {
    load_of<V>(reinterpret_cast<const Float16*>(from.data), offset, 1, V, out);
  } else {
    const DeviceGroups::Group group = from.groups.at(offset);
    if (group.left < V) return false;
    load_codes<V>(from.groups, from.groups.ranges[group.number], offset, out);
  }
  return true;
}

/// In a dtype that is known at run time only, the ends of rows and what does not lie side by side
/// come in one by one, in a loop that stays one: unrolled it is most of a kernel, which the
/// compiler then spends most of its time on. The element is chosen by comparison, as an index would
/// put the vector into local memory.
template <int V>
__device__ inline void load_each(const Reader<AnyFloat>& from, std::int64_t offset,
                                 std::int64_t stride, int valid, float (&out)[V]) {
  for (int e = 0; e < V; ++e) out[e] = 0;
  TIDEMARK_NO_UNROLL
  for (int i = 0; i < valid; ++i) {
    const float value = element_at(from, offset + i * stride);
    for (int e = 0; e < V; ++e) out[e] = e == i ? value : out[e];
  }
}

/// As load_of().
template <int V>
__device__ inline void load_any(const Reader<AnyFloat>& from, std::int64_t offset,
                                std::int64_t stride, int valid, float (&out)[V]) {
  if constexpr (V == 1)
    out[0] = valid > 0 ? element_at(from, offset) : 0.0f;
  else if (!load_quickly<V>(from, offset, stride, valid, out))
    load_each<V>(from, offset, stride, valid, out);
}

/// Calls act(i, values[i]) for i < valid, in a loop that stays one, as in load_each(): the next
/// value moves to the front.
template <int V, typename Act>
__device__ inline void for_each_value(const float (&values)[V], int valid, const Act& act) {
  float rest[V];
  for (int e = 0; e < V; ++e) rest[e] = values[e];
  TIDEMARK_NO_UNROLL
  for (int i = 0; i < valid; ++i) {
    act(i, rest[0]);
    for (int e = 0; e + 1 < V; ++e) rest[e] = rest[e + 1];
  }
}

/// Few elements are a new maximum, so most threads only look; what they see may be old, and then
/// the atomic operation decides.
__device__ inline void note_max(std::uint32_t* key, std::uint32_t candidate) {
  if (candidate > *static_cast<volatile std::uint32_t*>(key)) atomicMax(key, candidate);
}

/// By the range as it is: that of the last step, while this one's extremes are noted.
__device__ inline std::uint8_t dithered_code(const DeviceGroups& groups, const GroupRange& group,
                                             std::int64_t element, float x) {
  const auto i = static_cast<std::uint64_t>(element);
  const float levels = code_levels(groups.bits);
  const Encoder encoder(group, levels, levels);
  return static_cast<std::uint8_t>(encoder(x, dither_of(dither_word(groups.dither, i / 4), i)));
}

/// V codes of one group, side by side.
template <int V>
__device__ inline void write_codes(const DeviceGroups& groups, const Encoder& encoder,
                                   std::int64_t element, const float (&values)[V]) {
  std::uint32_t words[V / 4];
  TIDEMARK_UNROLL
  for (int w = 0; w < V / 4; ++w)
    words[w] = dither_word(groups.dither, static_cast<std::uint64_t>(element / 4 + w));
  *reinterpret_cast<Pack<std::uint8_t, V>*>(groups.written + element) =
      encoded<V>(encoder, values,
                 [&](int e) { return dither_of(words[e / 4], static_cast<std::uint64_t>(e % 4)); });
}

/// Codes of values from `offset` on, whose first is in `group`.
template <int V>
__device__ inline void write_codes(const DeviceGroups& groups, const DeviceGroups::Group& group,
                                   std::int64_t offset, std::int64_t stride, int valid,
                                   const float (&values)[V]) {
  if (groups.written == nullptr) return;
  const std::int64_t first = groups.first + offset;
  if constexpr (V % 4 == 0)
    if (stride == 1 && valid == V && group.left >= V && first % V == 0) {
      const float levels = code_levels(8);
      return write_codes<V>(groups, Encoder(groups.ranges[group.number], levels, levels), first,
                            values);
    }
  for_each_value(values, valid, [&](int i, float x) {
    const GroupRange& own = groups.range_at(offset + i * stride);
    const std::int64_t element = first + i * stride;
    groups.written[element] = dithered_code(groups, own, element, x);
  });
}

template <int V>
__device__ inline void note_min_max(const DeviceGroups& groups, std::int64_t offset,
                                    std::int64_t stride, int valid, const float (&values)[V]) {
  const DeviceGroups::Group group = groups.at(offset);
  write_codes<V>(groups, group, offset, stride, valid, values);
  if (stride != 1 || group.left < valid) {
    for_each_value(values, valid, [&](int i, float x) {
      const std::uint32_t high = order_key(x), low = ~high;
      GroupRange& own = groups.range_at(offset + i * stride);
      note_max(&own.least, low), note_max(&own.most, high);
    });
    return;
  }
  std::uint32_t least = 0, most = 0;
  for (int i = 0; i < V; ++i) {
    if (i >= valid) break;
    const std::uint32_t high = order_key(values[i]), low = ~high;
    least = low > least ? low : least, most = high > most ? high : most;
  }
  GroupRange& own = groups.ranges[group.number];
  note_max(&own.least, least), note_max(&own.most, most);
}

template <int V, typename T>
__device__ inline void load(const Reader<T>& from, std::int64_t offset, std::int64_t stride,
                            int valid, float (&out)[V]) {
  if (from.data == nullptr) {  // absent: zeros
    for (int i = 0; i < V; ++i) out[i] = 0;
  } else if constexpr (std::is_same_v<T, AnyFloat>) {
    load_any<V>(from, offset, stride, valid, out);
  } else {
    load_of<V>(from.data, offset, stride, valid, out);
  }
}

template <int V, typename T>
__device__ inline void store_to(T* data, std::int64_t offset, std::int64_t stride, int valid,
                                const float (&values)[V]) {
  if (stride == 1 && valid == V) {
    *reinterpret_cast<Pack<T, V>*>(data + offset) = packed<T>(values);
    return;
  }
  for (int i = 0; i < V; ++i)
    if (i < valid) data[offset + i * stride] = rounded_to<T>(values[i]);
}

__device__ inline void store_element(const Writer<AnyFloat>& to, std::int64_t at, float value) {
  if (to.dtype == DType::Float32)
    reinterpret_cast<float*>(to.data)[at] = value;
  else if (to.dtype == DType::BFloat16)
    reinterpret_cast<BFloat16*>(to.data)[at] = rounded_to<BFloat16>(value);
  else
    reinterpret_cast<Float16*>(to.data)[at] = rounded_to<Float16>(value);
}

/// As store_to().
template <int V>
__device__ inline void store_any(const Writer<AnyFloat>& to, std::int64_t offset,
                                 std::int64_t stride, int valid, const float (&values)[V]) {
  if (V == 1 || stride != 1 || valid != V) {
    for_each_value(values, valid,
                   [&](int i, float x) { store_element(to, offset + i * stride, x); });
  } else if (to.dtype == DType::Float32) {
    store_to<V>(reinterpret_cast<float*>(to.data), offset, 1, V, values);
  } else if (to.dtype == DType::BFloat16) {
    store_to<V>(reinterpret_cast<BFloat16*>(to.data), offset, 1, V, values);
  } else {
    store_to<V>(reinterpret_cast<Float16*>(to.data), offset, 1, V, values);
  }
}

/// An absent array swallows what is written. Whoever watches it does so elsewhere (watch.cuh).
template <int V, typename T>
__device__ inline void store_unwatched(const Writer<T>& to, std::int64_t offset,
                                       std::int64_t stride, int valid, const float (&values)[V]) {
  if (to.data == nullptr) return;
  if constexpr (std::is_same_v<T, AnyFloat>)
    store_any<V>(to, offset, stride, valid, values);
  else
    store_to<V>(to.data, offset, stride, valid, values);
}

/// Extremes go to the device's memory at once.
template <int V, typename T>
__device__ inline void store(const Writer<T>& to, std::int64_t offset, std::int64_t stride,
                             int valid, const float (&values)[V]) {
  store_unwatched<V>(to, offset, stride, valid, values);
  if constexpr (std::is_same_v<T, AnyFloat>)
    if (to.data != nullptr && to.groups.ranges != nullptr)
      note_min_max<V>(to.groups, offset, stride, valid, values);
}

/// As if stored as `dtype` and read again.
__device__ inline float rounded_as(DType dtype, float x) {
  if (dtype == DType::BFloat16) return to_fp32(rounded_to<BFloat16>(x));
  if (dtype == DType::Float16) return to_fp32(rounded_to<Float16>(x));
  return x;
}

template <typename T>
__device__ inline float load_one(const Reader<T>& from, std::int64_t offset) {
  float value[1];
  load<1>(from, offset, 1, 1, value);
  return value[0];
}
template <typename T>
__device__ inline void store_one(const Writer<T>& to, std::int64_t offset, float value) {
  const float values[1] = {value};
  store<1>(to, offset, 1, 1, values);
}

template <typename T>
struct Tag {
  using type = T;
};

/// Calls `function` with Tag<T> of the dtype that all arrays have, or of AnyFloat.
template <typename Arrays, typename Function>
void with_dtype_of(const Arrays& arrays, const Function& function) {
  DType common = DType::Float32;
  bool is_first = true, is_mixed = false;
  for (const Array* array : arrays) {
    CHECK(array->dtype <= DType::BFloat16 || array->groups);
    if (array->groups || (!is_first && array->dtype != common)) is_mixed = true;
    common = array->dtype, is_first = false;
  }
  if (is_mixed)
    function(Tag<AnyFloat>{});
  else if (common == DType::Float32)
    function(Tag<float>{});
  else if (common == DType::BFloat16)
    function(Tag<BFloat16>{});
  else
    function(Tag<Float16>{});
}

}  // namespace tidemark::cuda
