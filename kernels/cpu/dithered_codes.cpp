// A word of dither serves four neighbours, so whole words first fill a buffer.
#include "kernels/cpu/dithered_codes.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/rows.h"
#include "kernels/dither.h"

namespace tidemark::cpu {
namespace {

/// Bytes of dither from element `first` on, the first of them first % 4 bytes into the buffer.
TIDEMARK_CLONES void fill_with_dither(std::uint64_t key, std::uint64_t first_block,
                                      std::int64_t blocks, std::uint32_t* __restrict words) {
  for (std::int64_t j = 0; j < blocks; ++j)
    words[j] = dither_word(key, first_block + static_cast<std::uint64_t>(j));
}

TIDEMARK_CLONES void code_loop(std::int64_t n, std::uint8_t* __restrict codes,
                               const float* __restrict x, const std::uint8_t* __restrict dither,
                               float scale, float minimum, float levels) {
  constexpr float round = 12582912.0f;  // 1.5·2^23: the sum's last bits are the nearest integer
  for (std::int64_t i = 0; i < n; ++i) {
    const float level = (x[i] - minimum) * scale + dither_of(dither[i]);
    const float positive = level > 0.0f ? level : 0.0f;  // 0 of NaN
    const float limited = positive < levels ? positive : levels;
    codes[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(limited + round) & 0xffu);
  }
}

}  // namespace

// The words' bytes lie from the lowest on, as a little-endian machine stores them.
static_assert(std::endian::native == std::endian::little);

void make_codes(const Groups& groups, std::int64_t element, std::int64_t n, const float* values,
                std::uint8_t* codes) {
  std::uint32_t words[longest_run / 4 + 2];
  const float levels = code_levels(groups.bits);
  for (std::int64_t done = 0; done < n; done += longest_run) {
    const std::int64_t first = element + done, count = std::min(longest_run, n - done);
    fill_with_dither(groups.dither, static_cast<std::uint64_t>(first / 4),
                     (first + count + 3) / 4 - first / 4, words);
    const auto* const dither = reinterpret_cast<const std::uint8_t*>(words) + first % 4;
    for_parts(groups, first, count, [&](std::int64_t i, std::int64_t size, const GroupRange& of) {
      code_loop(size, codes + done + i, values + done + i, dither + i, levels / of.range,
                of.minimum, levels);
    });
  }
}

}  // namespace tidemark::cpu
