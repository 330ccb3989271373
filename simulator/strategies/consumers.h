// Who reads a tensor: an index over a trace.
#pragma once

#include <span>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

class Consumers {
 public:
  explicit Consumers(const Trace& trace);

  /// Ops that have the tensor as an input, in op order; an op that reads it twice is listed twice.
  std::span<const OpId> operator()(TensorId tensor) const {
    return std::span(ops_).subspan(begin_[index(tensor)],
                                   begin_[index(tensor) + 1] - begin_[index(tensor)]);
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<OpId> ops_;
};

/// True for ops that move or cast elements without needing anything for their gradient.
constexpr bool passes_through(OpKind kind) {
  return kind == OpKind::Cast || kind == OpKind::Copy || kind == OpKind::View ||
         kind == OpKind::Select;
}

}  // namespace tidemark
