// What the operands of an op must look like: how many there are, and how their shapes agree.
#pragma once

#include <cstddef>
#include <string>

#include "traces/trace.h"

namespace tidemark {

/// As many inputs, and as many outputs, as `Operands` has bits for.
inline constexpr std::size_t max_operands = 16;

/// From the fewest to the most, both included.
struct OperandCounts {
  std::size_t fewest = 1, most = 1;
};
OperandCounts input_counts(OpKind kind);
OperandCounts output_counts(OpKind kind);

/// "in0" to "in15" for inputs, "out0" to "out15" for outputs: how messages and trace files call
/// the operand at a bit position of `Operands`.
std::string operand_label(int bit);

/// Why the operands do not fit the op's kind: "in1 is [5, 4]; need [out, 8] …", or "" if they do.
/// Their ids must be in range and their dimensions positive and countable.
std::string shape_defect(const Trace& trace, const Op& op);

}  // namespace tidemark
