// Maps old tensors and ops to new ones as they are copied; blocks and loss follow at the end.
#include "simulator/strategies/trace_edit.h"

namespace tidemark {

// States of the optimizer have their own place.
std::vector<TensorId> unread_in(const Trace& trace) {
  std::vector<bool> is_read(trace.tensors.size());
  for (const TensorId operand : trace.operands)
    is_read[index(operand)] = is_read[index(trace[operand].storage)] = true;
  std::vector<TensorId> unread;
  for (std::size_t t = 0; t < is_read.size(); ++t)
    if (!is_read[t] && trace.tensors[t].category != Category::OptimizerState)
      unread.push_back(static_cast<TensorId>(t));
  return unread;
}

TraceEdit::TraceEdit(const Trace& from, Unread unread)
    : from_(from),
      map_(from.tensors.size(), no_tensor),
      new_op_(from.ops.size(), no_op),
      new_line_(from.lines.size(), no_line),
      block_input_(from.blocks.size(), no_tensor) {
  to_.model = from.model;
  to_.family = from.family;
  to_.step = from.step;
  to_.names.share(from.names);
  to_.blocks = from.blocks;
  to_.update = from.update;
  to_.tensors.reserve(from.tensors.size() + 64);
  to_.ops.reserve(from.ops.size() + 64);
  to_.operands.reserve(from.operands.size() + 64);
  for (Block& block : to_.blocks) block.begin = block.end = no_op;
  for (std::size_t t = 0; t < from.tensors.size(); ++t)  // no op names them
    if (from.tensors[t].category == Category::OptimizerState) map(static_cast<TensorId>(t));
  if (unread == Unread::Stays) unread_ = unread_in(from);
}

// Beside those that they stand beside in the old trace: what is allocated first lies first.
void TraceEdit::add_unread_before(std::size_t old) {
  while (next_unread_ < unread_.size() && index(unread_[next_unread_]) < old)
    map(unread_[next_unread_++]);
}

TensorId TraceEdit::add_tensor(Tensor tensor) {
  const auto id = static_cast<TensorId>(to_.tensors.size());
  if (tensor.storage == no_tensor) tensor.storage = id;
  to_.tensors.push_back(std::move(tensor));
  return id;
}

TensorId TraceEdit::map(TensorId old) {
  TensorId& now = map_[index(old)];
  if (now != no_tensor) return now;
  add_unread_before(index(old));
  Tensor tensor = from_[old];
  tensor.storage = tensor.storage == old ? no_tensor : to_[map(tensor.storage)].storage;
  if (const InputFill* fill = fill_of(from_, tensor)) {
    tensor.fill = static_cast<FillId>(to_.fills.size());
    to_.fills.push_back(*fill);
  }
  now = add_tensor(std::move(tensor));
  return now;
}

void TraceEdit::note_block(std::int32_t block) {
  if (block < 0) return;
  Block& range = to_.blocks[static_cast<std::size_t>(block)];
  if (range.begin == no_op) range.begin = static_cast<OpId>(to_.ops.size());
  range.end = static_cast<OpId>(to_.ops.size() + 1);
}

// Lines stand in the order of the ops that first name them.
LineId TraceEdit::map_line(LineId old) {
  if (old == no_line) return no_line;
  LineId& now = new_line_[index(old)];
  if (now == no_line) {
    now = static_cast<LineId>(to_.lines.size());
    to_.lines.push_back(from_.lines[index(old)]);
  }
  return now;
}

void TraceEdit::copy_operands(std::span<const TensorId> old) {
  for (const TensorId tensor : old) to_.operands.push_back(map(tensor));
}

// What lies in the memory of the first input lies in that of what stands for it.
void TraceEdit::follow_input0(const Op& old, std::uint32_t first_operand, std::size_t inputs) {
  if (inputs == 0) return;
  const TensorId storage = from_[from_.inputs(old)[0]].storage;
  const TensorId now = to_[to_.operands[first_operand]].storage;
  const std::size_t outputs = to_.operands.size() - first_operand - inputs;
  for (std::size_t i = 0; i < outputs; ++i) {
    const TensorId y = from_.outputs(old)[i];
    if (from_[y].storage == storage && storage != y)
      to_.tensors[index(to_.operands[first_operand + inputs + i])].storage = now;
  }
}

// The operands from `first_operand` on are the op's, inputs first.
void TraceEdit::append(Op op, std::uint32_t first_operand, std::size_t inputs,
                       std::span<const Attribute> attributes) {
  op.first_operand = first_operand;
  op.inputs = static_cast<std::uint16_t>(inputs);
  op.outputs = static_cast<std::uint16_t>(to_.operands.size() - first_operand - inputs);
  op.first_attribute = static_cast<std::uint32_t>(to_.attributes.size());
  op.attributes = static_cast<std::uint16_t>(attributes.size());
  to_.attributes.insert(to_.attributes.end(), attributes.begin(), attributes.end());
  if (op.opaque != no_opaque) {  // else it is new, or of another kind
    const OpaqueRow* const row = opaque_row(from_, op);
    op.opaque = static_cast<OpaqueId>(to_.opaque_rows.size());
    to_.opaque_rows.push_back(*row);
  }
  op.line = map_line(op.line);
  note_block(op.block);
  to_.ops.push_back(std::move(op));
}

void TraceEdit::copy(OpId id) {
  const Op& op = from_[id];
  copy_as(id, op.kind, op.inputs, op.outputs);
}

void TraceEdit::copy_as(OpId id, OpKind kind, std::size_t inputs, std::size_t outputs,
                        const std::vector<Tensor>& extra) {
  Op op = from_[id];
  op.kind = kind;
  const std::uint32_t first = next_operand();
  copy_operands(from_.inputs(from_[id]).first(inputs));
  copy_operands(from_.outputs(from_[id]).first(outputs));
  follow_input0(from_[id], first, inputs);
  for (const Tensor& tensor : extra) to_.operands.push_back(add_tensor(tensor));
  new_op_[index(id)] = static_cast<OpId>(to_.ops.size());
  append(std::move(op), first, inputs, from_.attributes_of(from_[id]));
}

void TraceEdit::copy_as_opaque(OpId id, OpaqueRow row, std::size_t inputs, std::size_t outputs,
                               const std::vector<Tensor>& extra) {
  copy_as(id, OpKind::Opaque, inputs, outputs, extra);
  Op& op = to_.ops.back();
  to_.attributes.resize(op.first_attribute), op.attributes = 0;
  op.opaque = static_cast<OpaqueId>(to_.opaque_rows.size());
  to_.opaque_rows.push_back(std::move(row));
}

void TraceEdit::copy_with_input0(OpId id, TensorId input) {
  const Op& op = from_[id];
  const std::uint32_t first = next_operand();
  to_.operands.push_back(input);
  copy_operands(from_.inputs(op).subspan(1));
  copy_operands(from_.outputs(op));
  follow_input0(op, first, op.inputs);
  new_op_[index(id)] = static_cast<OpId>(to_.ops.size());
  append(op, first, op.inputs, from_.attributes_of(op));
}

TensorId TraceEdit::emit(OpKind kind, Name name, std::initializer_list<TensorId> inputs,
                         const Tensor& output, bool inside_block) {
  Op op{.name = name, .kind = kind};
  if (inside_block) op.block = to_.ops.back().block, op.part = to_.ops.back().part;
  return emit(std::move(op), inputs, output);
}

TensorId TraceEdit::emit_beside(OpId beside, OpKind kind, Name name,
                                std::initializer_list<TensorId> inputs, const Tensor& output) {
  return emit(
      {.name = name, .kind = kind, .part = from_[beside].part, .block = from_[beside].block},
      inputs, output);
}

TensorId TraceEdit::emit_beside(OpId beside, OpaqueRow row, Name name,
                                std::initializer_list<TensorId> inputs, const Tensor& output) {
  const TensorId made = emit_beside(beside, OpKind::Opaque, name, inputs, output);
  to_.ops.back().opaque = static_cast<OpaqueId>(to_.opaque_rows.size());
  to_.opaque_rows.push_back(std::move(row));
  return made;
}

TensorId TraceEdit::emit(Op op, std::initializer_list<TensorId> inputs, const Tensor& output) {
  const std::uint32_t first = next_operand();
  to_.operands.insert(to_.operands.end(), inputs);
  const TensorId id = to_.operands.emplace_back(add_tensor(output));
  append(std::move(op), first, inputs.size(), {});
  return id;
}

void TraceEdit::emit_opaque(OpId beside, Name name, OpaqueRow row, std::span<const TensorId> inputs,
                            std::span<const TensorId> outputs, Operands also_keeps) {
  const std::uint32_t first = next_operand();
  to_.operands.insert(to_.operands.end(), inputs.begin(), inputs.end());
  to_.operands.insert(to_.operands.end(), outputs.begin(), outputs.end());
  append({.name = name,
          .kind = OpKind::Opaque,
          .block = from_[beside].block,
          .also_keeps = also_keeps},
         first, inputs.size(), {});
  to_.ops.back().opaque = static_cast<OpaqueId>(to_.opaque_rows.size());
  to_.opaque_rows.push_back(std::move(row));
}

TensorId TraceEdit::parameter(Name name, const Shape& shape, const Tensor& like) {
  return add_tensor({.name = name,
                     .shape = shape,
                     .dtype = like.dtype,
                     .category = Category::Parameter,
                     .trainable = like.trainable});
}

Trace TraceEdit::finish() {
  add_unread_before(from_.tensors.size());
  to_.loss = map(from_.loss);
  for (std::size_t b = 0; b < to_.blocks.size(); ++b)
    to_.blocks[b].input = block_input_[b] == no_tensor ? map(to_.blocks[b].input) : block_input_[b];
  for (std::size_t t = 0; t < to_.tensors.size(); ++t) {
    Tensor& tensor = to_.tensors[t];
    const bool is_view = tensor.storage != static_cast<TensorId>(t);
    if (is_view) tensor.held_until = no_op;  // what is now a part of another has that one's life
    if (tensor.held_until != no_op) tensor.held_until = new_op_[index(tensor.held_until)];
  }
  return std::move(to_);
}

}  // namespace tidemark
