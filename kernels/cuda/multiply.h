// Products of arrays of any strides and dtypes, out of what the library can multiply.
#pragma once

#include "kernels/cuda/gemm.h"

namespace tidemark::cuda {

/// The array with its last two axes exchanged; nothing moves.
Array transposed(const Array& x);

/// The array [..., n] as [rows, n]: as it lies if one stride leads through all rows, else a dense
/// copy in scratch slot `slot`.
Array as_rows(Launch& launch, const Array& x, std::size_t slot);

/// True if as_rows() needs no copy.
bool lies_in_rows(const Array& x);

/// c [..., m, n] = a [..., m, k] · b [..., k, n] (+ bias [n] or absent).
///
/// Batch axes are aligned at the end; one that is missing or of one element is repeated. The first
/// may also be shorter by a whole factor: batch i then reads i modulo its extent. Where c is the
/// one that is shorter, the products are summed, in fp32, in ascending order, and rounded once.
/// Takes slots 4 to 7 of the scratch, for operands that must be copied first.
void multiply(Launch& launch, const Array& a, const Array& b, const Array& c,
              const Array& bias = {});

/// Copies with a change of dtype and strides.
void convert(Launch& launch, const Array& from, const Array& to);

/// x = 0
void set_zero(Launch& launch, const Array& x);

}  // namespace tidemark::cuda
