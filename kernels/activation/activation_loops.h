// The forward loops that ReGelu2 and ReSilu2 share with Gelu and Silu: same code, same bits.
#pragma once

#include "kernels/activation/activation.h"

namespace tidemark::cpu {

/// y = f(x) on n elements; y and x do not overlap.
using UnaryLoop = void (*)(std::int64_t n, float* y, const float* x);

UnaryLoop gelu_loop_of(const Settings& settings);
UnaryLoop silu_loop_of();

}  // namespace tidemark::cpu
