// The plainest loops of fp32, which several kernels hand to map(). y is none of the others.
#pragma once

#include <cstdint>

namespace tidemark::cpu {

void add_loop(std::int64_t n, float* y, const float* a, const float* b);
void multiply_loop(std::int64_t n, float* y, const float* a, const float* b);

}  // namespace tidemark::cpu
