// Two countings of saved activations: what each op's backward holds, and each storage once.
#pragma once

#include <string>
#include <vector>

#include "simulator/derived.h"

namespace tidemark {

struct SavedBytes {
  Bytes per_op;  ///< each (op kind, tensor) once: the counting behind published shares; opaque ops
                 ///< of one operation count as a kind
  Bytes unique;  ///< each storage once, with what is kept for recovery

  bool operator==(const SavedBytes&) const = default;
};

/// What the plan keeps between forward and backward, parameters and their casts excluded. An
/// MS-norm's output counts with the linear that keeps it, and with the norm only if none does.
SavedBytes saved_bytes(const Trace& trace, const Plan& plan);
SavedBytes saved_bytes(const Trace& trace, const Plan& plan, const Derived& derived);

/// Saved by the ops of one kind, in units of one [batch, tokens, width] tensor of 16 bits.
struct KindUnits {
  OpKind kind{};
  double per_op = 0;
  double unique = 0;  ///< a storage counts with the first kind that keeps it

  bool operator==(const KindUnits&) const = default;
};

struct BlockUnits {
  std::string block;  ///< "" if the trace names no blocks
  Bytes unit;
  std::vector<KindUnits> kinds;  ///< in table order, only those that keep something
  double per_op = 0;
  double unique = 0;

  bool operator==(const BlockUnits&) const = default;
};

/// Of the middle block.
BlockUnits block_units(const Trace& trace, const Plan& plan);
BlockUnits block_units(const Trace& trace, const Plan& plan, const Needs& needs);

/// One group of equal saved tensors, as an autograd graph would list them.
struct SavedGroup {
  std::string op;   ///< what it does, by its kind
  int operand = 0;  ///< input i, or 16 + output j
  Shape shape;      ///< of the tensor that the op holds
  DType dtype{};
  Bytes storage;  ///< of the storage behind it
  std::int64_t count = 0;

  bool operator==(const SavedGroup&) const = default;
};

/// All that the trace's gradients need, kept as it is, in order of first appearance.
std::vector<SavedGroup> saved_groups(const Trace& trace, const Needs& needs);

}  // namespace tidemark
