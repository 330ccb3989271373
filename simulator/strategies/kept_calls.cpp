// A policy sees calls in the order in which they are made, and counts them anew in each segment.
#include "simulator/strategies/kept_calls.h"

#include <algorithm>
#include <array>

#include "traces/aten_calls.h"
#include "traces/fp8_linear.h"

namespace tidemark {
namespace {

// Norms, activations and softmaxes are named calls, too, and cheap to make again.
constexpr std::array dear = {OpKind::Linear, OpKind::MatMul, OpKind::Conv2d, OpKind::FlashAttention,
                             OpKind::ReduceScatter};

// A bias is a part of the call: aten.addmm. torchao's linears call aten.mm with tensors of their
// own, whatever that does inside.
bool is_plain_product(const Trace& trace, const Op& op) {
  return (op.kind == OpKind::Linear && op.inputs < 3) || is_float8_linear(trace, op);
}

}  // namespace

std::vector<bool> kept_by_op(const Trace& trace, const std::vector<Region>& segments) {
  std::vector<bool> kept(trace.ops.size());
  for (const Region& segment : segments) {
    std::size_t products = 0;
    for (std::size_t i = index(segment.begin); i < index(segment.end); ++i) {
      const Op& op = trace.ops[i];
      if (is_plain_product(trace, op) && ++products % 2 == 0) continue;
      const bool is_coded = is_float8_linear(trace, op);
      const bool is_dear = is_coded || std::ranges::find(dear, op.kind) != dear.end();
      const bool may_stay = is_coded || op.kind == OpKind::ReduceScatter || may_be_saved(trace, op);
      kept[i] = is_dear && may_stay;
    }
  }
  return kept;
}

std::vector<bool> kept_results(const Trace& trace, const std::vector<bool>& kept) {
  std::vector<bool> found(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const auto outputs = trace.outputs(trace.ops[i]);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const bool is_held = opaque_row(trace, trace.ops[i]) &&
                           (trace.ops[i].also_keeps & output_bit(static_cast<int>(k))) != 0;
      found[index(outputs[k])] = kept[i] || is_held;
    }
  }
  return found;
}

OpId with_unknown_calls(const Trace& trace, const std::vector<Region>& segments) {
  for (const Region& segment : segments)
    for (std::size_t i = index(segment.begin); i < index(segment.end); ++i)
      if (!has_known_calls(trace, trace.ops[i])) return static_cast<OpId>(i);
  return no_op;
}

}  // namespace tidemark
