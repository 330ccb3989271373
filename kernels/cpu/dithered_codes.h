// Codes by the ranges as they are, with dither (kernels/dither.h): what the delayed quantizer
// makes.
#pragma once

#include "kernels/array.h"

namespace tidemark::cpu {

/// A code each, in a byte of its own, of `n` values of which the first is element `element` of the
/// storage: rn((x − m)·L/r + u − 1/2), clipped to 0 and L. `groups.dither` is the step's.
void make_codes(const Groups& groups, std::int64_t element, std::int64_t n, const float* values,
                std::uint8_t* codes);

}  // namespace tidemark::cpu
