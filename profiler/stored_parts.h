// How a weight is stored in few bits: what a frozen base looks like before the first step.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark::profiler {

/// Which part of which stored weight a parameter is.
struct StoredPart {
  OpId op{};             ///< that multiplies by the weight
  std::size_t part = 0;  ///< 0 = the codes, then as the op's inputs
};
std::optional<StoredPart> stored_part_of(const Trace& trace, TensorId parameter);

/// Rows and columns of the stored weight.
Shape stored_shape(const Trace& trace, OpId op);

/// That part of the weight, as bitsandbytes codes it, but for the mean that it takes off factors
/// before it codes them.
std::vector<double> stored_values(const Trace& trace, const StoredPart& part,
                                  const std::vector<double>& weight);

}  // namespace tidemark::profiler
