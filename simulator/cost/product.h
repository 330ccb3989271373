// What a product of matrices is to the roofline, whatever op makes it.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// m × k times k × n, batch times.
struct Product {
  double batch = 1, m = 1, n = 1, k = 1;
};

/// As the op kind sees its operands: linears, batched products, convolutions and fused attention.
Product product_of(const Trace& trace, const Op& op);

}  // namespace tidemark
