// Mesa's quantizer on the CPU: one pass for the statistics, one that quantizes; see mesa.h. Whoever
// reads codes as an array's elements decodes them (cpu/rows.h).
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/mesa/mesa.h"
#include "traces/error.h"

namespace tidemark::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float decay = 0.9f;  // of the running statistics, in the release's policies

/// The smaller resp. larger one; NaN wins.
TIDEMARK_INLINE float lesser(float a, float b) {
  return static_cast<int>(b < a) + static_cast<int>(b != b) != 0 ? b : a;
}
TIDEMARK_INLINE float greater(float a, float b) {
  return static_cast<int>(b > a) + static_cast<int>(b != b) != 0 ? b : a;
}

/// Where a group's extremes are found so far: the smallest in each lane, then the largest.
constexpr std::int64_t extremes_size = 2 * choosing_lanes;

/// A stretch of elements of one group.
struct Part {
  std::int64_t group, begin, size, end;  ///< of `end` elements altogether
};

/// Divides the row-major order of a value into stretches of one group each.
class Groups {
 public:
  Groups(const Shape& shape, const Quantizer& quantizer)
      : count_(quantizer.groups), stretch_(stretch_of(quantizer, shape)) {}

  /// The parts of elements [first, first + n), counted from the first one; an empty one is last.
  TIDEMARK_INLINE Part first_part(std::int64_t first, std::int64_t n) const {
    return {first / stretch_ % count_, 0, std::min(stretch_ - first % stretch_, n), n};
  }
  TIDEMARK_INLINE void advance(Part& part) const {
    part.begin += part.size;
    part.size = std::min(stretch_, part.end - part.begin);
    if (++part.group == count_) part.group = 0;
  }

 private:
  std::int64_t count_, stretch_;
};

TIDEMARK_CLONES void widen(const Groups& groups, std::int64_t first, std::int64_t n,
                           const float* __restrict x, float* __restrict extremes) {
  for (Part part = groups.first_part(first, n); part.size > 0; groups.advance(part)) {
    float* const of_group = extremes + part.group * extremes_size;
    float least[choosing_lanes], most[choosing_lanes];
    for (std::int64_t k = 0; k < choosing_lanes; ++k)
      least[k] = of_group[k], most[k] = of_group[choosing_lanes + k];
    std::int64_t i = part.begin;
    for (; i + choosing_lanes <= part.begin + part.size; i += choosing_lanes)
      for (std::int64_t k = 0; k < choosing_lanes; ++k) {
        least[k] = lesser(least[k], x[i + k]);
        most[k] = greater(most[k], x[i + k]);
      }
    for (std::int64_t k = 0; i < part.begin + part.size; ++i, ++k) {
      least[k] = lesser(least[k], x[i]);
      most[k] = greater(most[k], x[i]);
    }
    for (std::int64_t k = 0; k < choosing_lanes; ++k)
      of_group[k] = least[k], of_group[choosing_lanes + k] = most[k];
  }
}

TIDEMARK_CLONES void quantize_loop(const Groups& groups, std::int64_t first, std::int64_t n,
                                   std::uint8_t* __restrict codes, const float* __restrict x,
                                   const std::uint32_t* __restrict words,
                                   const float* __restrict statistics, float limit) {
  constexpr float round = 12582912.0f;  // 1.5·2^23: the sum's last bits are the nearest integer
  for (Part part = groups.first_part(first, n); part.size > 0; groups.advance(part)) {
    const float scale = code_levels / statistics[2 * part.group];
    const float minimum = statistics[2 * part.group + 1];
    for (std::int64_t i = part.begin; i < part.begin + part.size; ++i) {
      const float u = static_cast<float>(static_cast<std::int32_t>(words[i] + 1)) * 0x1p-24f;
      const float level = (x[i] - minimum) * scale + (u - 0.5f);
      const float positive = level > 0.0f ? level : 0.0f;
      const float limited = positive < limit ? positive : limit;
      codes[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(limited + round) & 0xffu);
    }
  }
}

void update_statistics(const Call& call, const Groups& groups, Workspace& workspace) {
  const Array& value = call.inputs[0];
  const auto count = static_cast<std::size_t>(call.quantizer.groups);
  const std::span<float> extremes = workspace.floats(count * extremes_size);
  const auto of_group = [&](std::size_t g) { return extremes.subspan(g * extremes_size); };
  for (std::size_t g = 0; g < count; ++g) {
    std::ranges::fill(of_group(g).first(choosing_lanes), infinity);
    std::ranges::fill(of_group(g).subspan(choosing_lanes, choosing_lanes), -infinity);
  }
  alignas(64) float scratch[longest_run];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        widen(groups, first, n, read(runs[0], n, scratch), extremes.data());
        first += n;
      },
      true);
  float* const statistics = call.quantizer.statistics;
  for (std::size_t g = 0; g < count; ++g) {
    float minimum = infinity, maximum = -infinity;
    for (const float x : of_group(g).first(choosing_lanes)) minimum = lesser(minimum, x);
    for (const float x : of_group(g).subspan(choosing_lanes, choosing_lanes))
      maximum = greater(maximum, x);
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
  const float limit = call.quantizer.wraps ? 0x1p22f : code_levels;
  alignas(64) float scratch[longest_run];
  alignas(64) std::uint32_t buffer[word_buffer];
  std::int64_t first = 0;
  for_runs(
      value.shape, std::array{&value},
      [&](const auto& runs, std::int64_t n) {
        const float* const x = read(runs[0], n, scratch);
        const std::uint32_t* const words = random_words(random, first, n, buffer);
        quantize_loop(groups, first, n, elements<std::uint8_t>(codes) + first, x, words,
                      call.quantizer.statistics, limit);
        first += n;
      },
      true);
}

void dequantize(const Call& call, Workspace&) { assign(call.outputs[0], call.inputs[0]); }

}  // namespace tidemark::cpu
