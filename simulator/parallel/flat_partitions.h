// DeepSpeed's flat parameters of ZeRO 1 and 2: one buffer per dtype, cut into one partition per
// rank.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Counts of elements from the buffer's start.
struct FlatPlace {
  TensorId parameter;
  std::int64_t begin = 0, end = 0;
};

struct FlatGroup {
  DType dtype = DType::Float32;
  std::vector<FlatPlace> places;
  std::int64_t partition = 0;  ///< elements of each rank; those of the last are filled up
};

/// Parameters that are trained, in the model's order; a partition has an even number of elements
/// (deepspeed/runtime/zero/stage_1_and_2.py).
std::vector<FlatGroup> flat_groups(const Trace& trace);

/// By tensor: elements of it in the first partition, which the first rank updates.
std::vector<std::int64_t> elements_of_first_partition(const Trace& trace);

/// In how many slices gradients of these parameters, one behind the other, go to partitions:
/// neighbours of one partition are one slice.
std::int64_t partition_slices(const std::vector<FlatGroup>& groups,
                              const std::vector<TensorId>& parameters);

}  // namespace tidemark
