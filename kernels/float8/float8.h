// Activations in floats of eight bits (e4m3.h), beside a magnitude per group, by the granularity of
// COAT (arXiv 2410.19313, section 5). A group is numel / groups neighbours in row-major order.
//
//   Quantize    inputs {value}, outputs {codes, magnitudes}. m = the largest |x| of the group, in
//               fp32; code = the float of eight bits that is nearest to x · (448 / m), ties to
//               even.
//   Dequantize  inputs {codes, magnitudes}, outputs {value}: x = code · (m / 448).
//
// Codes have the dtype Float8 and lie as the value does: densely, row-major, as do the magnitudes
// [groups], fp32. The value has any data dtype; fp32 arithmetic.
// The largest magnitude of a group comes back within a rounding, zeros come back as zeros of their
// sign. A group whose m is below 2^-110 comes back as zeros. NaN or ±∞ in a group makes all of it
// NaN, so that the fault shows.
#pragma once

#include "kernels/cpu/workspace.h"

namespace tidemark {

/// Are the codes floats? Of calls that quantize or dequantize.
inline bool codes_are_floats(const Call& call) {
  const Array& codes = call.pass == Pass::Quantize ? call.outputs[0] : call.inputs[0];
  return codes.dtype == DType::Float8;
}

}  // namespace tidemark

namespace tidemark::cpu {

void quantize_to_float8(const Call& call, Workspace& workspace);
void dequantize_from_float8(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void quantize_to_float8(const Call& call, Launch& launch);
void dequantize_from_float8(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
