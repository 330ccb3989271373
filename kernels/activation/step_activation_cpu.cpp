// ReGelu2 and ReSilu2 on the CPU: exact forward, 2-bit codes, step derivative.
#include <bit>
#include <cstring>

#include "base/error.h"
#include "kernels/activation/activation_loops.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

static_assert(std::endian::native == std::endian::little);  // four codes are read as one word

TIDEMARK_CLONES void segment_loop(std::int64_t n, std::uint8_t* __restrict code,
                                  const float* __restrict x, const float* __restrict c) {
  const float c0 = c[0], c1 = c[1], c2 = c[2];
  for (std::int64_t i = 0; i < n; ++i)
    code[i] =
        static_cast<std::uint8_t>((x[i] > c0 ? 1 : 0) + (x[i] > c1 ? 1 : 0) + (x[i] > c2 ? 1 : 0));
}

// Byte k of a word goes to its bits 2k and 2k + 1.
TIDEMARK_CLONES void pack_loop(std::int64_t n, std::uint8_t* __restrict packed,
                               const std::uint32_t* __restrict codes) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = codes[i];
    packed[i] = static_cast<std::uint8_t>(word | word >> 6 | word >> 12 | word >> 18);
  }
}

// Writes the codes of elements [first, first + n). Bytes are begun by their first element.
void pack(const std::uint8_t* codes, std::int64_t first, std::int64_t n, std::uint8_t* packed) {
  const auto single = [&](std::int64_t i) {
    std::uint8_t& byte = packed[(first + i) / 4];
    const auto place = 2 * ((first + i) % 4);
    byte = static_cast<std::uint8_t>((place == 0 ? 0 : byte) | codes[i] << place);
  };
  std::int64_t i = 0;
  for (; i < n && (first + i) % 4 != 0; ++i) single(i);
  std::array<std::uint32_t, longest_run / 4> words;
  const std::int64_t whole = (n - i) / 4;
  std::memcpy(words.data(), codes + i, static_cast<std::size_t>(whole) * 4);
  pack_loop(whole, packed + (first + i) / 4, words.data());
  for (i += whole * 4; i < n; ++i) single(i);
}

void forward(const Call& call, const StepDerivative& steps, UnaryLoop loop) {
  const Array &x = call.inputs[0], &y = call.outputs[0], &codes = call.outputs[1];
  CHECK(is_dense(codes.layout()) && numel(codes.shape) == (numel(x.shape) + 3) / 4);
  alignas(64) float in[longest_run], out[longest_run];
  alignas(64) std::uint8_t segments[longest_run];
  std::int64_t first = 0;
  for_runs(
      x.shape, std::array{&y, &x},
      [&](const auto& runs, std::int64_t n) {
        const float* const values = read(runs[1], n, in);
        float* const results = place(runs[0], out);
        loop(n, results, values);
        write(runs[0], n, results);
        segment_loop(n, segments, values, steps.c);
        pack(segments, first, n, elements<std::uint8_t>(codes));
        first += n;
      },
      true);
}

using Levels = std::array<float, 4>;
using LevelTable = std::array<Levels, 256>;

// By byte: the slopes of its four elements.
constexpr LevelTable slopes_of(const StepDerivative& steps) {
  LevelTable table{};
  const Levels levels = {0.0f, steps.a[0], steps.a[0] + steps.a[1],
                         steps.a[0] + steps.a[1] + steps.a[2]};
  for (std::size_t byte = 0; byte < 256; ++byte)
    for (std::size_t k = 0; k < 4; ++k) table[byte][k] = levels[byte >> (2 * k) & 3];
  return table;
}
constexpr LevelTable regelu2_slopes = slopes_of(regelu2_steps);
constexpr LevelTable resilu2_slopes = slopes_of(resilu2_steps);

void multiply_by_slopes(std::int64_t n, std::int64_t first, float* __restrict dx,
                        const float* __restrict dy, const std::uint8_t* packed,
                        const LevelTable& slopes) {
  const auto single = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(first + i);
    dx[i] = dy[i] * slopes[packed[at / 4]][at % 4];
  };
  std::int64_t i = 0;
  for (; i < n && (first + i) % 4 != 0; ++i) single(i);
  packed += (first + i) / 4;
  for (; i + 4 <= n; i += 4, ++packed)
    for (std::int64_t k = 0; k < 4; ++k)
      dx[i + k] = dy[i + k] * slopes[*packed][static_cast<std::size_t>(k)];
  packed -= (first + i) / 4;
  for (; i < n; ++i) single(i);
}

void backward(const Call& call, const LevelTable& slopes) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  alignas(64) float in[longest_run], out[longest_run];
  std::int64_t first = 0;
  for_runs(
      dx.shape, std::array{&dx, &dy},
      [&](const auto& runs, std::int64_t n) {
        const float* const gradients = read(runs[1], n, in);
        float* const results = place(runs[0], out);
        multiply_by_slopes(n, first, results, gradients,
                           elements<const std::uint8_t>(call.outputs[1]), slopes);
        write(runs[0], n, results);
        first += n;
      },
      true);
}

}  // namespace

void regelu2_forward(const Call& call, Workspace&) {
  forward(call, regelu2_steps, gelu_loop_of(call.settings));
}
void regelu2_backward(const Call& call, Workspace&) { backward(call, regelu2_slopes); }
void resilu2_forward(const Call& call, Workspace&) { forward(call, resilu2_steps, silu_loop_of()); }
void resilu2_backward(const Call& call, Workspace&) { backward(call, resilu2_slopes); }

}  // namespace tidemark::cpu
