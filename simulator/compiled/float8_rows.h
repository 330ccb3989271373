// What torch.compile makes of torchao's linears in eight bits, in bytes and kernels.
#pragma once

#include "traces/opaque.h"

namespace tidemark {

/// Elements, which as codes are bytes, and bytes per element.
struct Float8Product {
  std::int64_t x = 0, w = 0, y = 0;
  std::int64_t rows = 0;
  std::int64_t wide = 0, stored = 0;  ///< bytes per element of x and y; of the weight
  bool codes_x = true;                ///< and no product before it has made the same codes
  bool x_is_fused = true;             ///< what makes x looks for the largest, too
  bool keeps_codes_of_x = false;      ///< turned, which the backward makes anew else
  Bytes needs = {};                   ///< that the backward makes x again of
  std::uint32_t wanted = 0;           ///< bit i: input i has a gradient
};

/// Codes of a weight: by rows, which its product takes, and turned, which stay for the backward.
OpaqueRow float8_codes_row(const Float8Product& product);

/// The product, with the casts of x, and in the backward of the gradient and of x. What it keeps is
/// its caller's to say.
OpaqueRow float8_product_row(const Float8Product& product);

}  // namespace tidemark
