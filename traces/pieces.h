// A tensor in many pieces along one axis. An op has a limited number of operands, so that more are
// cut, and joined, in steps.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

/// `count` equal views of `x` along `axis`, which they divide.
std::vector<TensorId> cut(TraceBuilder& builder, const std::string& name, TensorId x,
                          std::size_t axis, std::int64_t count);

/// Pieces of one shape behind each other along `axis`, in new memory. More than max_operands are
/// copied once more than a framework copies them; the most bytes at once are the same.
TensorId join(TraceBuilder& builder, const std::string& name, std::span<const TensorId> pieces,
              std::size_t axis);

}  // namespace tidemark
