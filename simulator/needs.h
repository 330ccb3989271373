// What the gradients of a trace need, derived once: the backward is never written down twice.
#pragma once

#include "traces/trace.h"

namespace tidemark {

struct Needs {
  /// Per op: the inputs that get a gradient (bit i = input i); 0 = the op has no backward.
  std::vector<std::uint32_t> gradients;
  /// Per op: of these, the inputs whose gradient is the memory of the output's, so that no kernel
  /// writes it.
  std::vector<std::uint32_t> handed_on;
  /// Per op: the operands that its backward holds.
  std::vector<Operands> saved;
  /// Per storage: the op that writes it, or no_op for parameters and inputs.
  std::vector<OpId> producer;
  /// Per op: it does not run again, whatever the plan: its row says so, or a later op works in
  /// place on what it reads or writes. But what one block makes, changes and leaves to no gradient
  /// may be made again, from its first version on (recovery.h).
  std::vector<bool> runs_once;
  /// Per storage: the last op that reads it, through whichever alias, or no_op.
  std::vector<OpId> last_read;
  /// Per storage: the last op that works in place on it, or no_op. What was there before is gone
  /// then.
  std::vector<OpId> overwritten_by;
  /// Per storage: how many backward ops need it.
  std::vector<std::uint32_t> uses;
};

/// Per op: the inputs that get a gradient, on a path from a trainable tensor to the loss.
std::vector<std::uint32_t> derive_gradients(const Trace& trace);

/// Adds the ops that meet an earlier version of a storage that `stays` as its last op in place has
/// left it: what wrote the earlier one would write over it, and what read that would read another.
void add_ops_on_earlier_versions(const Trace& trace, const Needs& needs,
                                 const std::vector<bool>& stays, std::vector<bool>& once);

/// An op has a backward if the loss depends on a trainable tensor through it.
Needs derive_needs(const Trace& trace);

/// The last op of the forward that reads the storage, or makes it if none does.
inline OpId last_forward_use(const Needs& needs, TensorId storage) {
  const OpId read = needs.last_read[index(storage)];
  return read == no_op ? needs.producer[index(storage)] : read;
}

/// The last of ops [begin, end) that hands tensors to PyTorch's saved-tensor hooks, frozen weights
/// like any; no_op if none does. The number that something is scaled by never meets them.
OpId last_that_packs(const Trace& trace, const Needs& needs, OpId begin, OpId end);

/// Of ops [begin, end), run again as torch.utils.checkpoint does: where that stops. An op's inputs
/// are packed before it runs, its outputs afterwards; when the last is, the rest of the function
/// does not run (_StopRecomputationError of torch/utils/checkpoint.py).
OpId end_of_reruns(const Trace& trace, const Needs& needs, OpId begin, OpId end);

/// Calls `visit(storage, tensor)` for each operand in the mask, lowest bit first.
template <typename Visit>
void for_each_operand(const Trace& trace, const Op& op, Operands mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) {
    const TensorId tensor = operand(trace, op, __builtin_ctz(mask));
    visit(trace[tensor].storage, tensor);
  }
}

}  // namespace tidemark
