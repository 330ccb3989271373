// Mesa's quantizer on the CPU: one pass for minimum and maximum, unless they are known, and one for
// the codes, which are packed where they are shorter than a byte; see mesa.h. Whoever reads codes
// as an array's elements decodes them (cpu/rows.h).
#include <bit>
#include <cmath>

#include "base/error.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/dithered_codes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/dither.h"
#include "kernels/mesa/mesa.h"
#include "kernels/stochastic_rounding.h"

namespace tidemark::cpu {
namespace {

constexpr float decay = 0.9f;  // of the running range, in the release's policies

TIDEMARK_CLONES void quantize_loop(std::int64_t n, std::uint8_t* __restrict codes,
                                   const float* __restrict x, const std::uint16_t* __restrict bits,
                                   float range, float minimum, float levels, float limit) {
  constexpr float round = 12582912.0f;  // 1.5·2^23: the sum's last bits are the nearest integer
  const float scale = levels / range;
  for (std::int64_t i = 0; i < n; ++i) {
    const float level = (x[i] - minimum) * scale + rounding_of(bits[i]);
    const float positive = level > 0.0f ? level : 0.0f;
    const float limited = positive < limit ? positive : limit;
    codes[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(limited + round) & 0xffu);
  }
}

// In order: the first code of a byte clears it.
void pack(const std::uint8_t* codes, std::int64_t first, std::int64_t n, int bits,
          std::uint8_t* packed) {
  const unsigned mask = (1u << bits) - 1;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t bit = (first + i) * bits;
    const unsigned before = bit % 8 == 0 ? 0 : packed[bit / 8];
    packed[bit / 8] = static_cast<std::uint8_t>(before | (codes[i] & mask) << (bit % 8));
  }
}

/// Calls body(x, first, n) for the value's elements in row-major order, `first` counting them.
template <typename Body>
void in_order(const Array& value, Body&& body) {
  alignas(64) float scratch[longest_run];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        body(read(runs[0], n, scratch), first, n);
        first += n;
      },
      true);
}

/// As it was stored: whoever noted it may have had more digits.
float rounded_to(DType dtype, float x) {
  std::byte stored[sizeof(float)];
  set_value(stored, dtype, x);
  return value_at(stored, dtype);
}

// Minimum and maximum enter the running range.
void update_range(GroupRange& group, DType dtype, bool is_first) {
  const float least = rounded_to(dtype, -number_of_key(group.least));
  const float range = rounded_to(dtype, number_of_key(group.most)) - least;
  const float minimum = std::isnan(range) ? range : least;
  group.range = is_first ? range : decay * group.range + (1 - decay) * range;
  group.minimum = is_first ? minimum : decay * group.minimum + (1 - decay) * minimum;
}

void forget(GroupRange& group) { group.least = group.most = 0; }

bool is_first(const Call& call, const Workspace& workspace) {
  return workspace.state.number == 0 && !call.quantizer.continues;
}

// In the first step there is no range yet: extremes first, which stay noted for the next step.
void quantize_delayed(const Call& call, Workspace& workspace) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  const Quantizer& quantizer = call.quantizer;
  Groups groups = groups_of(quantizer, value.shape, codes.data);
  groups.dither = step_dither(workspace.state.seed, workspace.state.number, call.key);
  const auto note_all = [&] {
    in_order(value, [&](const float* x, std::int64_t first, std::int64_t n) {
      note_min_max(groups, first, n, x);
    });
  };
  const bool notes = !quantizer.knows_min_max, first_step = is_first(call, workspace);
  if (first_step && notes) note_all();
  if (first_step)
    for (std::int64_t g = 0; g < groups.count; ++g)
      update_range(groups.ranges[g], value.dtype, true);
  if (quantizer.has_codes && !first_step) return;
  std::uint8_t unpacked[longest_run];
  in_order(value, [&](const float* x, std::int64_t first, std::int64_t n) {
    if (notes && !first_step) note_min_max(groups, first, n, x);
    const bool is_packed = groups.bits < 8;
    make_codes(groups, first, n, x, is_packed ? unpacked : elements<std::uint8_t>(codes) + first);
    if (is_packed) pack(unpacked, first, n, groups.bits, elements<std::uint8_t>(codes));
  });
}

}  // namespace

void move_range(const Call& call, Workspace& workspace) {
  const Quantizer& quantizer = call.quantizer;
  for (std::int64_t g = 0; g < quantizer.groups; ++g) {
    GroupRange& group = quantizer.ranges[g];
    if ((group.least | group.most) != 0 && !is_first(call, workspace))
      update_range(group, call.inputs[0].dtype, false);
    forget(group);
  }
}

void quantize(const Call& call, Workspace& workspace) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  CHECK(is_dense(codes.layout()) && numel(codes.shape) == numel(value.shape));
  if (call.quantizer.delayed) return quantize_delayed(call, workspace);
  const Groups groups = groups_of(call.quantizer, value.shape, codes.data);
  if (!call.quantizer.knows_min_max)
    in_order(value, [&](const float* x, std::int64_t first, std::int64_t n) {
      note_min_max(groups, first, n, x);
    });
  for (std::int64_t g = 0; g < groups.count; ++g) {
    update_range(groups.ranges[g], value.dtype, is_first(call, workspace));
    forget(groups.ranges[g]);
  }
  const RandomTensor random{workspace.state.seed, workspace.state.number, call.key};
  const float levels = code_levels(groups.bits);
  const float limit = call.quantizer.wraps ? 0x1p22f : levels;
  alignas(64) std::uint32_t buffer[word_buffer];
  std::uint8_t unpacked[longest_run];
  in_order(value, [&](const float* x, std::int64_t first, std::int64_t n) {
    const std::uint16_t* const bits = many_rounding_bits(random, first, n, buffer);
    const bool is_packed = groups.bits < 8;
    std::uint8_t* const to = is_packed ? unpacked : elements<std::uint8_t>(codes) + first;
    for_parts(groups, first, n, [&](std::int64_t i, std::int64_t size, const GroupRange& group) {
      quantize_loop(size, to + i, x + i, bits + i, group.range, group.minimum, levels, limit);
    });
    if (is_packed) pack(unpacked, first, n, groups.bits, elements<std::uint8_t>(codes));
  });
}

void dequantize(const Call& call, Workspace&) { assign(call.outputs[0], call.inputs[0]); }

}  // namespace tidemark::cpu
