// Mesa's quantizer on the CPU: one pass for the statistics, one that quantizes; see mesa.h.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/mesa/mesa.h"
#include "traces/error.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t lanes = 16;  // partial results: one vector of the widest instruction set
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float decay = 0.9f;  // of the running statistics, in the release's policies
constexpr float levels = 255;  // steps between the 256 codes

/// Of a group so far, in interleaved partial results.
struct Extremes {
  float least[lanes], most[lanes];
};

/// The smaller resp. larger one; NaN wins.
TIDEMARK_INLINE float lesser(float a, float b) {
  return choose(static_cast<int>(b < a) + static_cast<int>(b != b) != 0, b, a);
}
TIDEMARK_INLINE float greater(float a, float b) {
  return choose(static_cast<int>(b > a) + static_cast<int>(b != b) != 0, b, a);
}

TIDEMARK_CLONES void widen(Extremes& extremes, const float* __restrict x, std::int64_t n) {
  float least[lanes], most[lanes];
  for (std::int64_t k = 0; k < lanes; ++k) least[k] = extremes.least[k], most[k] = extremes.most[k];
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) {
      least[k] = lesser(least[k], x[i + k]);
      most[k] = greater(most[k], x[i + k]);
    }
  for (std::int64_t k = 0; i < n; ++i, ++k) {
    least[k] = lesser(least[k], x[i]);
    most[k] = greater(most[k], x[i]);
  }
  for (std::int64_t k = 0; k < lanes; ++k) extremes.least[k] = least[k], extremes.most[k] = most[k];
}

TIDEMARK_CLONES void quantize_loop(std::int64_t n, std::uint8_t* __restrict codes,
                                   const float* __restrict x, const std::uint32_t* __restrict words,
                                   float minimum, float scale, float limit) {
  constexpr float round = 12582912.0f;  // 1.5·2^23: the sum's last bits are the nearest integer
  for (std::int64_t i = 0; i < n; ++i) {
    const float u = static_cast<float>(static_cast<std::int32_t>(words[i] + 1)) * 0x1p-24f;
    const float level = (x[i] - minimum) * scale + (u - 0.5f);
    const float positive = level > 0.0f ? level : 0.0f;
    const float limited = positive < limit ? positive : limit;
    codes[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(limited + round) & 0xffu);
  }
}

TIDEMARK_CLONES void dequantize_loop(std::int64_t n, float* __restrict x,
                                     const std::uint8_t* __restrict codes, float minimum,
                                     float step) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(static_cast<std::int32_t>(codes[i])) * step + minimum;
}

/// Divides the row-major order of a value into stretches of one group each.
class Groups {
 public:
  Groups(const Shape& shape, const Quantizer& quantizer) : count_(quantizer.groups) {
    const auto axis = static_cast<std::size_t>(quantizer.group_axis);
    CHECK(axis < shape.rank() && shape[axis] % count_ == 0);
    stretch_ = shape[axis] / count_;
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) stretch_ *= shape[i];
  }

  /// Calls body(group, i, n) for the parts of elements [first, first + n): they begin at first + i.
  template <typename Body>
  void for_parts(std::int64_t first, std::int64_t n, Body&& body) const {
    std::int64_t group = first / stretch_ % count_, left = stretch_ - first % stretch_;
    for (std::int64_t i = 0; i < n;) {
      const std::int64_t part = std::min(left, n - i);
      body(group, i, part);
      i += part, left = stretch_;
      if (++group == count_) group = 0;
    }
  }

 private:
  std::int64_t count_, stretch_;
};

void update_statistics(const Call& call, const Groups& groups, Workspace& workspace) {
  const Array& value = call.inputs[0];
  const auto count = static_cast<std::size_t>(call.quantizer.groups);
  const std::span<float> memory = workspace.floats(count * sizeof(Extremes) / sizeof(float));
  auto* const extremes = reinterpret_cast<Extremes*>(memory.data());
  for (std::size_t g = 0; g < count; ++g)
    std::ranges::fill(extremes[g].least, infinity), std::ranges::fill(extremes[g].most, -infinity);
  alignas(64) float scratch[longest_run];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        const float* const x = read(runs[0], n, scratch);
        groups.for_parts(first, n, [&](std::int64_t group, std::int64_t i, std::int64_t part) {
          widen(extremes[group], x + i, part);
        });
        first += n;
      },
      true);
  float* const statistics = call.quantizer.statistics;
  for (std::size_t g = 0; g < count; ++g) {
    float minimum = infinity, maximum = -infinity;
    for (const float x : extremes[g].least) minimum = lesser(minimum, x);
    for (const float x : extremes[g].most) maximum = greater(maximum, x);
    const float range = maximum - minimum;
    float *const old_range = statistics + 2 * g, *const old_minimum = old_range + 1;
    const bool is_first = workspace.state.number == 0;
    *old_range = is_first ? range : decay * *old_range + (1 - decay) * range;
    *old_minimum = is_first ? minimum : decay * *old_minimum + (1 - decay) * minimum;
  }
}

}  // namespace

void quantize(const Call& call, Workspace& workspace) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  CHECK(is_dense(codes.layout()) && numel(codes.shape) == numel(value.shape));
  const Groups groups(value.shape, call.quantizer);
  update_statistics(call, groups, workspace);
  const RandomTensor random{workspace.state.seed, workspace.state.number, call.key};
  const float limit = call.quantizer.wraps ? 0x1p22f : levels;
  alignas(64) float scratch[longest_run];
  alignas(64) std::uint32_t buffer[word_buffer];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        const float* const x = read(runs[0], n, scratch);
        const std::uint32_t* const words = random_words(random, first, n, buffer);
        std::uint8_t* const to = elements<std::uint8_t>(codes) + first;
        groups.for_parts(first, n, [&](std::int64_t group, std::int64_t i, std::int64_t part) {
          const float* const of_group = call.quantizer.statistics + 2 * group;
          quantize_loop(part, to + i, x + i, words + i, of_group[1], levels / of_group[0], limit);
        });
        first += n;
      },
      true);
}

void dequantize(const Call& call, Workspace&) {
  const Array &codes = call.inputs[0], &value = call.outputs[0];
  CHECK(is_dense(codes.layout()) && numel(codes.shape) == numel(value.shape));
  const Groups groups(value.shape, call.quantizer);
  alignas(64) float scratch[longest_run];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        float* const x = place(runs[0], scratch);
        const std::uint8_t* const from = elements<const std::uint8_t>(codes) + first;
        groups.for_parts(first, n, [&](std::int64_t group, std::int64_t i, std::int64_t part) {
          const float* const of_group = call.quantizer.statistics + 2 * group;
          dequantize_loop(part, x + i, from + i, of_group[1], of_group[0] / levels);
        });
        write(runs[0], n, x);
        first += n;
      },
      true);
}

}  // namespace tidemark::cpu
