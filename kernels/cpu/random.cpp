#include "kernels/cpu/random.h"

#include "kernels/cpu/clones.h"
#include "kernels/philox.h"

namespace tidemark::cpu {
namespace {

TIDEMARK_CLONES void philox_loop(std::uint64_t key, std::uint64_t first, std::int64_t blocks,
                                 std::uint64_t stream, std::uint32_t* __restrict words) {
  for (std::int64_t j = 0; j < blocks; ++j) {
    const PhiloxBlock block = philox(key, first + static_cast<std::uint64_t>(j), stream);
    for (int k = 0; k < 4; ++k) words[4 * j + k] = block.word[k] >> 8;
  }
}

}  // namespace

const std::uint32_t* random_words(const RandomTensor& tensor, std::int64_t first, std::int64_t n,
                                  std::uint32_t* buffer) {
  const std::uint64_t key = step_key(tensor.seed, tensor.step);
  const std::int64_t blocks = (first + n + 3) / 4 - first / 4;
  philox_loop(key, static_cast<std::uint64_t>(first / 4), blocks, tensor.key, buffer);
  return buffer + first % 4;
}

}  // namespace tidemark::cpu
