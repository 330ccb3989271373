// Truths of masks, as PyTorch stores them: bytes, 1 for whatever is not 0.
#pragma once

#include <cstdint>

#include "kernels/philox.h"

namespace tidemark {

struct Boolean {
  std::uint8_t value = 0;
};

TIDEMARK_ANYWHERE constexpr float to_float(Boolean x) { return x.value != 0 ? 1.0f : 0.0f; }
TIDEMARK_ANYWHERE constexpr Boolean to_boolean(float x) {
  return {static_cast<std::uint8_t>(x != 0 ? 1 : 0)};
}

}  // namespace tidemark
