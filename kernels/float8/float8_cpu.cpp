// Floats of eight bits on the CPU: a pass for the groups' magnitudes and one for the codes; see
// float8.h.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/rows.h"
#include "kernels/float8/e4m3.h"
#include "kernels/float8/float8.h"

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES std::uint32_t largest_key(std::int64_t n, const float* x) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t key = magnitude_key(x[i]);
    largest = key > largest ? key : largest;
  }
  return largest;
}

TIDEMARK_CLONES void encode_loop(std::int64_t n, const float* __restrict x,
                                 Float8* __restrict codes, float inverse) {
  for (std::int64_t i = 0; i < n; ++i) codes[i] = to_float8(x[i] * inverse);
}

TIDEMARK_CLONES void decode_loop(std::int64_t n, const Float8* __restrict codes,
                                 float* __restrict x, float scale) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = to_float(codes[i]) * scale;
}

/// Calls body(first element, how many, group) for stretches of one group that are no longer than a
/// run.
template <typename Body>
void for_stretches(std::int64_t elements, std::int64_t groups, Body&& body) {
  const std::int64_t stretch = elements / groups;
  for (std::int64_t group = 0; group < groups; ++group)
    for (std::int64_t i = 0; i < stretch; i += longest_run)
      body(group * stretch + i, std::min(longest_run, stretch - i), group);
}

void check_arrays(const Array& value, const Array& codes, const Array& magnitudes) {
  CHECK(is_dense(value.layout()) && is_dense(codes.layout()) && is_dense(magnitudes.layout()));
  CHECK(numel(codes.shape) == numel(value.shape) && magnitudes.dtype == DType::Float32);
  CHECK(numel(value.shape) % std::max<std::int64_t>(numel(magnitudes.shape), 1) == 0);
}

}  // namespace

void quantize_to_float8(const Call& call, Workspace&) {
  const Array &value = call.inputs[0], &codes = call.outputs[0], &magnitudes = call.outputs[1];
  check_arrays(value, codes, magnitudes);
  const std::int64_t groups = numel(magnitudes.shape), n = numel(value.shape);
  if (groups == 0) return;
  float* const largest = elements<float>(magnitudes);
  std::fill_n(largest, groups, 0.0f);
  alignas(64) float x[longest_run];
  const auto read = [&](std::int64_t first, std::int64_t count) {
    to_floats(value.data + first * size_of(value.dtype), value.dtype, count, x);
  };
  for_stretches(n, groups, [&](std::int64_t first, std::int64_t count, std::int64_t group) {
    read(first, count);
    const std::uint32_t found = std::max(magnitude_key(largest[group]), largest_key(count, x));
    largest[group] = std::bit_cast<float>(found);
  });
  for_stretches(n, groups, [&](std::int64_t first, std::int64_t count, std::int64_t group) {
    read(first, count);
    encode_loop(count, x, elements<Float8>(codes) + first, float8_inverse(largest[group]));
  });
}

void dequantize_from_float8(const Call& call, Workspace&) {
  const Array &codes = call.inputs[0], &magnitudes = call.inputs[1], &value = call.outputs[0];
  check_arrays(value, codes, magnitudes);
  const std::int64_t groups = numel(magnitudes.shape);
  if (groups == 0) return;
  alignas(64) float x[longest_run];
  for_stretches(numel(value.shape), groups,
                [&](std::int64_t first, std::int64_t count, std::int64_t group) {
                  decode_loop(count, elements<const Float8>(codes) + first, x,
                              float8_scale(elements<const float>(magnitudes)[group]));
                  from_floats(x, count, value.data + first * size_of(value.dtype), value.dtype);
                });
}

}  // namespace tidemark::cpu
