// Linear layers whose frozen weight is stored in four or eight bits (bitsandbytes 0.50,
// autograd/_functions.py and backends/): no gradient but that of x.
//
//   Nf4Linear   x [..., in], codes [in·out / 2, 1], factors [in·out / 64] (fp32, or codes of
//   uint8),
//               numbers [16], with coded factors also theirs [… / 256] and their numbers [256],
//               bias [out] or absent → y [..., out] = x · Wᵀ + bias; dx = dy · W. W = number ·
//               factor, rounded to x's dtype (stored_weight.h). The framework's mean of the
//               factors, which it takes off before it codes them, is no tensor here and 0
//   Int8Linear  x, codes [out, in], factors [out], bias or absent → y: each row of x, rounded to
//               fp16, becomes codes ⌊127·x / max|x|⌉, and y = Σ codes · codes · max|x| · factor /
//               127² + bias, rounded to fp16, then to y's dtype. dx = dy · W with W = code · factor
//               / 127, rounded to x's dtype
//
// Any strides and data dtypes of x, y and their gradients; what is stored is dense. Sums in fp32.
// Tolerance as for linear. Scratch: the weight in fp32 (CUDA: in x's dtype), for Int8Linear also x
// and y. An absent dy counts as zero.
#pragma once

#include "kernels/cpu/workspace.h"
#include "kernels/stored_linear/stored_weight.h"
#include "traces/formula.h"

namespace tidemark {

/// Inputs 1 to so many are the stored weight.
inline std::size_t stored_inputs(const Call& call) {
  if (call.formula == Formula::Int8Linear) return 2;
  return call.inputs[2].dtype == DType::UInt8 ? 5 : 3;
}

inline Array bias_of(const Call& call) {
  const std::size_t i = 1 + stored_inputs(call);
  return i < call.inputs.size() ? call.inputs[i] : Array{};
}

inline FourBitWeight four_bit_weight(const Call& call) {
  const auto bytes = [&](std::size_t i) { return elements<const std::uint8_t>(call.inputs[i]); };
  const auto numbers = [&](std::size_t i) { return elements<const float>(call.inputs[i]); };
  if (call.inputs[2].dtype == DType::UInt8)
    return {bytes(1), nullptr, bytes(2), numbers(3), numbers(4), numbers(5)};
  return {bytes(1), numbers(2), nullptr, numbers(3), nullptr, nullptr};
}

}  // namespace tidemark

namespace tidemark::cpu {

void nf4_linear_forward(const Call& call, Workspace& workspace);
void int8_linear_forward(const Call& call, Workspace& workspace);
void stored_linear_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void nf4_linear_forward(const Call& call, Launch& launch);
void int8_linear_forward(const Call& call, Launch& launch);
void stored_linear_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
