// Which kernel PyTorch's scaled_dot_product_attention runs, by its own rules.
#pragma once

#include <cstdint>

#include "traces/tensor.h"

namespace tidemark {

enum class AttentionKernel : std::uint8_t {
  Eager,     ///< the model's own code: products and a softmax
  Composed,  ///< PyTorch's: products and a softmax in fp32, with the scale split on q and k
  Flash,
  MemoryEfficient,
};

/// What is handed to it.
struct AttentionCall {
  DType dtype = DType::Float32;
  std::int64_t head_width = 64;
  std::int64_t value_width = 0;  ///< 0: as wide
  bool grouped = false;          ///< fewer heads of keys and values (enable_gqa)
  bool broadcasts = false;       ///< … without saying so
  bool masked = false;           ///< by a tensor that is added to the scores
};

/// The first kernel in PyTorch's order that takes the call. `capability` is 80 for 8.0.
AttentionKernel sdpa_kernel(const AttentionCall& call, std::int64_t capability);

}  // namespace tidemark
