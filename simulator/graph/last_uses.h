// After which op of the forward pass something about a tensor ends.
#pragma once

#include <span>
#include <vector>

#include "simulator/needs.h"

namespace tidemark {

/// Tensors grouped by an op, in one flat array that is filled once.
class TensorsByOp {
 public:
  /// All groups are empty.
  TensorsByOp() = default;
  /// `op_of_tensor` may be no_op: such a tensor is in no group.
  TensorsByOp(std::size_t ops, const std::vector<OpId>& op_of_tensor);

  std::span<const TensorId> operator()(std::size_t op) const {
    if (begin_.empty()) return {};
    return std::span(tensors_).subspan(begin_[op], begin_[op + 1] - begin_[op]);
  }

 private:
  std::vector<std::uint32_t> begin_;  // by op
  std::vector<TensorId> tensors_;
};

/// Storages that ops make, by the op after which their forward value is no longer read, nor named
/// by a local variable.
TensorsByOp last_forward_uses(const Trace& trace, const Needs& needs);

/// Storages that ops make, by the op after which no local variable names them.
TensorsByOp last_held_uses(const Trace& trace, const Needs& needs);

}  // namespace tidemark
