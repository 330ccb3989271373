// Converts runs between fp32 and other dtypes, decodes codes, merges axes into long runs.
#include "kernels/cpu/rows.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/boolean.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/dithered_codes.h"
#include "kernels/number_formats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES void widen_bfloat16(const BFloat16* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}
TIDEMARK_CLONES void narrow_bfloat16(const float* from, std::int64_t n, BFloat16* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_bfloat16(from[i]);
}
TIDEMARK_CLONES void widen_portably(const Float16* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}
TIDEMARK_CLONES void narrow_portably(const float* from, std::int64_t n, Float16* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float16(from[i]);
}

#if defined(__x86_64__)
// Eight at a time by the processor's own conversion; the rest by the portable loop, which gives
// the same bits.
__attribute__((target("avx,f16c"))) void widen_by_f16c(const Float16* from, std::int64_t n,
                                                       float* to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  for (; i < n; ++i) to[i] = to_float(from[i]);
}
__attribute__((target("avx,f16c"))) void narrow_by_f16c(const float* from, std::int64_t n,
                                                        Float16* to) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  for (; i < n; ++i) to[i] = to_float16(from[i]);
}
#endif

bool has_f16c() {
#if defined(__x86_64__)
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;  // whatever has it has F16C as well
  }();
  return has;
#else
  return false;
#endif
}

void widen_float16(const Float16* from, std::int64_t n, float* to) {
#if defined(__x86_64__)
  if (has_f16c()) return widen_by_f16c(from, n, to);
#endif
  widen_portably(from, n, to);
}
void narrow_float16(const float* from, std::int64_t n, Float16* to) {
#if defined(__x86_64__)
  if (has_f16c()) return narrow_by_f16c(from, n, to);
#endif
  narrow_portably(from, n, to);
}

// By dtype: the type of the elements. Int64 is for indices and never read as a number.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Float32:
      return body(float{});
    case DType::BFloat16:
      return body(BFloat16{});
    case DType::Float16:
      return body(Float16{});
    case DType::Float64:
      return body(double{});
    case DType::UInt8:
      return body(std::uint8_t{});
    case DType::Bool:
      return body(Boolean{});
    case DType::Int64:
    case DType::Float8:
    case DType::Float4x2:
      break;
  }
  CHECK(!"rows of a dtype that has none");
}

float number(float x) { return x; }
float number(BFloat16 x) { return to_float(x); }
float number(Float16 x) { return to_float(x); }
float number(double x) { return static_cast<float>(x); }
float number(std::uint8_t x) { return static_cast<float>(x); }
float number(Boolean x) { return to_float(x); }

void assign(float& to, float x) { to = x; }
void assign(BFloat16& to, float x) { to = to_bfloat16(x); }
void assign(Float16& to, float x) { to = to_float16(x); }
void assign(double& to, float x) { to = x; }
void assign(std::uint8_t& to, float x) { to = static_cast<std::uint8_t>(x); }
void assign(Boolean& to, float x) { to = to_boolean(x); }

TIDEMARK_CLONES void decode_loop(std::int64_t n, float* __restrict to,
                                 const std::uint8_t* __restrict codes, float levels, float range,
                                 float minimum) {
  const float step = range / levels;
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<float>(static_cast<std::int32_t>(codes[i])) * step + minimum;
}

std::uint8_t code_of(const Groups& groups, std::int64_t element) {
  const std::int64_t bit = element * groups.bits;
  const unsigned byte = std::to_integer<unsigned>(groups.first[bit / 8]);
  return static_cast<std::uint8_t>(byte >> (bit % 8) & ((1u << groups.bits) - 1));
}

// Consecutive elements, whose codes lie in a byte each.
void decode(const Groups& groups, std::int64_t element, std::int64_t n, const std::uint8_t* codes,
            float* to) {
  const float levels = code_levels(groups.bits);
  for_parts(groups, element, n, [&](std::int64_t i, std::int64_t size, const GroupRange& group) {
    decode_loop(size, to + i, codes + i, levels, group.range, group.minimum);
  });
}

// Where an element's code would lie in a byte of its own tells its number in the storage.
void decode(const Run& run, std::int64_t n, float* to) {
  const Groups& groups = *run.groups;
  const std::int64_t element = run.data - groups.first;
  if (groups.bits == 8 && run.stride == 1)
    return decode(groups, element, n, reinterpret_cast<const std::uint8_t*>(run.data), to);
  const std::int64_t part = run.stride == 1 ? longest_run : 1;
  std::uint8_t codes[longest_run];
  for (std::int64_t i = 0; i < n; i += part) {
    const std::int64_t at = element + i * run.stride, size = std::min(part, n - i);
    for (std::int64_t k = 0; k < size; ++k) codes[k] = code_of(groups, at + k);
    decode(groups, at, size, codes, to + i);
  }
}

struct Keys {
  std::uint32_t smallest, largest;
};

// On integers the compiler may choose in any order, and so in vectors.
TIDEMARK_CLONES void find_min_max(std::int64_t n, const float* __restrict x,
                                  Keys* __restrict found) {
  std::uint32_t smallest = 0xffffffff, largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t key = order_key(x[i]);
    smallest = key < smallest ? key : smallest;
    largest = key > largest ? key : largest;
  }
  *found = {smallest, largest};
}

}  // namespace

void to_floats(const std::byte* from, DType dtype, std::int64_t n, float* to) {
  with_type(dtype, [&]<typename T>(T) {
    const T* const values = reinterpret_cast<const T*>(from);
    if constexpr (std::is_same_v<T, float>)
      std::memcpy(to, values, static_cast<std::size_t>(n) * sizeof(float));
    else if constexpr (std::is_same_v<T, BFloat16>)
      widen_bfloat16(values, n, to);
    else if constexpr (std::is_same_v<T, Float16>)
      widen_float16(values, n, to);
    else
      for (std::int64_t i = 0; i < n; ++i) to[i] = number(values[i]);
  });
}

void from_floats(const float* from, std::int64_t n, std::byte* to, DType dtype) {
  with_type(dtype, [&]<typename T>(T) {
    T* const values = reinterpret_cast<T*>(to);
    if constexpr (std::is_same_v<T, float>)
      std::memcpy(values, from, static_cast<std::size_t>(n) * sizeof(float));
    else if constexpr (std::is_same_v<T, BFloat16>)
      narrow_bfloat16(from, n, values);
    else if constexpr (std::is_same_v<T, Float16>)
      narrow_float16(from, n, values);
    else
      for (std::int64_t i = 0; i < n; ++i) assign(values[i], from[i]);
  });
}

void note_min_max(const Groups& groups, std::int64_t element, std::int64_t n, const float* values) {
  for_parts(groups, element, n, [&](std::int64_t i, std::int64_t size, GroupRange& group) {
    Keys found;
    find_min_max(size, values + i, &found);
    group.least = std::max(group.least, ~found.smallest);
    group.most = std::max(group.most, found.largest);
  });
}

void watch(const Groups& groups, std::int64_t element, std::int64_t n, const float* values) {
  note_min_max(groups, element, n, values);
  if (groups.codes != nullptr) make_codes(groups, element, n, values, groups.codes + element);
}

void watch(const Run& run, std::int64_t n, const float* values) {
  const std::int64_t element = (run.data - run.groups->first) / size_of(run.dtype);
  if (run.stride == 1) return watch(*run.groups, element, n, values);
  for (std::int64_t i = 0; i < n; ++i) watch(*run.groups, element + i * run.stride, 1, values + i);
}

void gather(const Run& run, std::int64_t n, float* to) {
  if (run.groups != nullptr && run.dtype == DType::UInt8) return decode(run, n, to);
  if (run.stride == 1) return to_floats(run.data, run.dtype, n, to);
  if (run.stride == 0) return std::fill_n(to, n, value_at(run.data, run.dtype)), void();
  with_type(run.dtype, [&]<typename T>(T) {
    const T* const values = reinterpret_cast<const T*>(run.data);
    for (std::int64_t i = 0; i < n; ++i) to[i] = number(values[i * run.stride]);
  });
}

void scatter(const float* from, std::int64_t n, const Run& run) {
  if (run.stride == 1) return from_floats(from, n, run.data, run.dtype);
  with_type(run.dtype, [&]<typename T>(T) {
    T* const values = reinterpret_cast<T*>(run.data);
    for (std::int64_t i = 0; i < n; ++i) assign(values[i * run.stride], from[i]);
  });
}

float value_at(const std::byte* at, DType dtype) {
  float value = 0;
  with_type(dtype, [&]<typename T>(T) { value = number(*reinterpret_cast<const T*>(at)); });
  return value;
}

void set_value(std::byte* at, DType dtype, float value) {
  with_type(dtype, [&]<typename T>(T) { assign(*reinterpret_cast<T*>(at), value); });
}

RunSpace::RunSpace(const Shape& shape, std::span<const Array* const> arrays, bool ordered)
    : arrays_(arrays.size()) {
  std::array<std::size_t, Shape::max_rank> axes{};
  std::size_t count = 0;
  const auto stride_of = [&](std::size_t axis, std::size_t k) -> std::int64_t {
    const Shape& own = arrays[k]->shape;
    const std::size_t missing = shape.rank() - std::min(shape.rank(), own.rank());
    if (axis < missing || own[axis - missing] == 1) return 0;
    return arrays[k]->strides[axis - missing] * size_of(arrays[k]->dtype);
  };
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1) axes[count++] = axis;
  if (!ordered)
    std::stable_sort(
        axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count),
        [&](std::size_t a, std::size_t b) { return stride_of(a, 0) > stride_of(b, 0); });
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t extent = shape[axes[i]];
    Offsets strides{};
    for (std::size_t k = 0; k < arrays_; ++k) strides[k] = stride_of(axes[i], k);
    bool merges = rank_ > 0;
    for (std::size_t k = 0; merges && k < arrays_; ++k)
      merges = strides_[rank_ - 1][k] == strides[k] * extent;
    if (!merges) ++rank_;
    extents_[rank_ - 1] = merges ? extents_[rank_ - 1] * extent : extent;
    strides_[rank_ - 1] = strides;
  }
}

}  // namespace tidemark::cpu
