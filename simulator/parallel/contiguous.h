// Where Megatron-LM puts a rank's main gradients, and the parameters of its distributed optimizer:
// one buffer per dtype, cut into buckets.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Counts of elements from the buffer's start.
struct ContiguousPlace {
  TensorId parameter;
  std::int64_t begin = 0, end = 0;
  std::size_t bucket = 0;
};

struct ContiguousBucket {
  DType dtype = DType::Float32;  ///< of the parameters
  std::int64_t begin = 0, end = 0;
  std::int64_t replicas = 1;  ///< ranks with the same parameters, which reduce it

  std::int64_t numel() const { return end - begin; }
};

struct ContiguousLayout {
  std::vector<ContiguousPlace> places;  ///< in the order of the buffer
  std::vector<ContiguousBucket> buckets;
};

/// Parameters that are trained, in reverse order; those of experts that ranks share by themselves,
/// because fewer ranks have the same ones. Those of the distributed optimizer start at
/// multiples of 64 elements, and buckets end at multiples of the ranks and of 128, so that each
/// rank gets as much (core/distributed/param_and_grad_buffer.py). With `overlap` buckets of the
/// first pipeline stage close at max(40 million, 1 million per rank) elements; all else is one.
ContiguousLayout contiguous_layout(const Trace& trace, const Sharding& sharing);

/// By tensor: elements of it that the first rank of the distributed optimizer updates.
std::vector<std::int64_t> elements_of_first_rank(const Trace& trace, const Sharding& sharing);

}  // namespace tidemark
