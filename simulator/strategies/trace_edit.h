// Writes a changed copy of a trace, op by op. Tensors that only ops refer to which are not copied
// are left behind.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// What no op names: buffers and parameters that a module has and does not use.
enum class Unread : std::uint8_t {
  Stays,
  Leaves,  ///< with the part of the model that has it
};

/// Buffers and parameters that no op reads, in order.
std::vector<TensorId> unread_in(const Trace& trace);

class TraceEdit {
 public:
  explicit TraceEdit(const Trace& from, Unread unread = Unread::Stays);

  const Trace& from() const { return from_; }
  /// A name in the new trace, whose pool has those of the old one as well.
  Name name(std::string_view text) { return to_.names.add(text); }

  /// Copies an op; its operands are replaced by what they were mapped to.
  void copy(OpId op);
  /// As copy, as another kind that reads the first `inputs` operands and writes the first `outputs`
  /// ones; `extra` outputs are added.
  void copy_as(OpId op, OpKind kind, std::size_t inputs, std::size_t outputs,
               const std::vector<Tensor>& extra = {});
  /// As copy_as, as an opaque op without attributes.
  void copy_as_opaque(OpId op, OpaqueRow row, std::size_t inputs, std::size_t outputs,
                      const std::vector<Tensor>& extra);
  /// As copy, with another first input; ids of the new trace.
  void copy_with_input0(OpId op, TensorId input);

  /// A new op outside of blocks, or inside of the block that the last copied op belongs to.
  TensorId emit(OpKind kind, Name name, std::initializer_list<TensorId> inputs,
                const Tensor& output, bool inside_block = false);
  /// The op as it is said, without attributes.
  TensorId emit(Op op, std::initializer_list<TensorId> inputs, const Tensor& output);
  /// As emit, in the block and part of an op of the old trace.
  TensorId emit_beside(OpId beside, OpKind kind, Name name, std::initializer_list<TensorId> inputs,
                       const Tensor& output);
  /// As emit_beside, an opaque op.
  TensorId emit_beside(OpId beside, OpaqueRow row, Name name,
                       std::initializer_list<TensorId> inputs, const Tensor& output);
  /// An opaque op in the block of an op of the old trace; ids of the new trace.
  void emit_opaque(OpId beside, Name name, OpaqueRow row, std::span<const TensorId> inputs,
                   std::span<const TensorId> outputs, Operands also_keeps = 0);
  /// The op that was written last ends the life of what an old one, which is not copied, would.
  void stand_for(OpId old) { new_op_[index(old)] = static_cast<OpId>(to_.ops.size() - 1); }
  /// What no op makes, or what the next one will.
  TensorId external(const Tensor& tensor) { return add_tensor(tensor); }
  TensorId parameter(Name name, const Shape& shape, const Tensor& like);

  /// The block's input in the new trace; otherwise what the old one is mapped to in the end.
  void feed_block(std::size_t block, TensorId input) { block_input_[block] = input; }

  /// Where the old tensor is in the new trace; made when first asked for.
  TensorId map(TensorId old);
  /// From here on, references to the old tensor mean `now`.
  void redirect(TensorId old, TensorId now) { map_[index(old)] = now; }
  const Tensor& operator[](TensorId id) const { return to_[id]; }

  Trace finish();

 private:
  std::uint32_t next_operand() const { return static_cast<std::uint32_t>(to_.operands.size()); }
  void copy_operands(std::span<const TensorId> old);
  void follow_input0(const Op& old, std::uint32_t first_operand, std::size_t inputs);
  void append(Op op, std::uint32_t first_operand, std::size_t inputs,
              std::span<const Attribute> attributes);
  TensorId add_tensor(Tensor tensor);
  void add_unread_before(std::size_t old);
  void note_block(std::int32_t block);
  LineId map_line(LineId old);

  const Trace& from_;
  Trace to_;
  std::vector<TensorId> map_;
  std::vector<TensorId> unread_;       ///< that stay, in order
  std::size_t next_unread_ = 0;        ///< of which these are added
  std::vector<OpId> new_op_;           ///< by old op
  std::vector<LineId> new_line_;       ///< by old line
  std::vector<TensorId> block_input_;  ///< by block, where it was said
};

}  // namespace tidemark
