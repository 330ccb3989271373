// Sorts tensors by op in two counting passes; an alias's read counts as one of its storage.
#include "simulator/graph/last_uses.h"

#include <algorithm>

#include "traces/framework.h"

namespace tidemark {

TensorsByOp::TensorsByOp(std::size_t ops, const std::vector<OpId>& op_of_tensor) : begin_(ops + 1) {
  for (const OpId op : op_of_tensor)
    if (op != no_op) ++begin_[index(op) + 1];
  for (std::size_t i = 0; i < ops; ++i) begin_[i + 1] += begin_[i];
  tensors_.resize(begin_[ops]);
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (std::size_t t = 0; t < op_of_tensor.size(); ++t)
    if (op_of_tensor[t] != no_op)
      tensors_[next[index(op_of_tensor[t])]++] = static_cast<TensorId>(t);
}

namespace {

// Who calls a block has a name for what it calls it with, until the block returns.
void name_inputs(const Trace& trace, std::vector<OpId>& end) {
  for (const Block& block : trace.blocks) {
    OpId& until = end[index(trace[block.input].storage)];
    if (until != no_op && block.begin != block.end)
      until = std::max(until, static_cast<OpId>(index(block.end) - 1));
  }
}

}  // namespace

TensorsByOp last_forward_uses(const Trace& trace, const Needs& needs) {
  std::vector<OpId> end = needs.producer;
  for (std::size_t t = 0; t < end.size(); ++t)
    if (end[t] != no_op && needs.last_read[t] != no_op) end[t] = needs.last_read[t];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const OpId held = trace.tensors[t].held_until; end[t] != no_op && held != no_op)
      end[t] = std::max(end[t], held);
  if (find_framework(trace.step.framework).holds_locals) name_inputs(trace, end);
  return {trace.ops.size(), end};
}

TensorsByOp last_held_uses(const Trace& trace, const Needs& needs) {
  std::vector<OpId> end(trace.tensors.size(), no_op);
  for (std::size_t t = 0; t < end.size(); ++t)
    if (needs.producer[t] != no_op) end[t] = trace.tensors[t].held_until;
  return {trace.ops.size(), end};
}

}  // namespace tidemark
