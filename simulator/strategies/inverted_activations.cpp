// Activations by their output (in-place GELU of arXiv 2210.10246, section 3.1; SiLU has one minimum
// as well): the backward finds the slope from y, which the next product keeps anyway, and from a
// bit that says on which side of the minimum x was. What was read is free after the forward.
//   before   x ─gelu─► y ─linear─►       x and y are kept
//   after    x ─inverted gelu─► y, bits ─linear─►    y and the bits are kept
#include "simulator/strategies/block_list.h"
#include "simulator/strategies/trace_edit.h"
#include "traces/formula.h"

namespace tidemark {
namespace {

// As the kernels compute it: GELU that a model composes is the tanh form.
Formula inverted(const Trace& trace, const Op& op) {
  if (op.kind == OpKind::Silu) return Formula::InvertedSilu;
  if (op.kind == OpKind::GeluComposed) return Formula::InvertedTanhGelu;
  if (op.kind != OpKind::Gelu) return Formula::None;
  return attribute(trace, op, AttributeKey::TanhApprox) != 0 ? Formula::InvertedTanhGelu
                                                             : Formula::InvertedGelu;
}

// One kernel each way: x is read, y and the sides are written; both gradients, y and the sides.
OpaqueRow row_of(Formula formula, Bytes values, Bytes sides) {
  return {.operation = formula == Formula::InvertedSilu ? "inverted SiLU" : "inverted GELU",
          .gradients = 1,
          .saved = output_bit(0) | output_bit(1),
          .computes = formula,
          .forward = {.moved = values + values + sides},
          .backward = {.moved = values + values + values + sides}};
}

}  // namespace

Rewritten invert_activations(const Trace& trace, const StrategyArguments& arguments) {
  const auto meant = meant_blocks(trace, arguments);
  if (const auto* refusal = std::get_if<Refusal>(&meant)) return *refusal;
  const std::vector<bool>& is_meant = std::get<0>(meant);
  TraceEdit edit(trace);
  bool found = false;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const auto id = static_cast<OpId>(i);
    const std::size_t block =
        op.block < 0 ? trace.blocks.size() : static_cast<std::size_t>(op.block);
    const Formula formula = is_meant[block] ? inverted(trace, op) : Formula::None;
    if (formula == Formula::None) {
      edit.copy(id);
      continue;
    }
    found = true;
    const Tensor& y = trace[trace.outputs(op)[0]];
    const Tensor sides{.name = edit.name(op.name + ".sides"),
                       .shape = {round_up(numel(y.shape), 8) / 8},
                       .dtype = DType::UInt8};
    edit.copy_as_opaque(id, row_of(formula, size(y), size(sides)), 1, 1, {sides});
  }
  if (!found) return "no GELU or SiLU in this trace";
  return edit.finish();
}

}  // namespace tidemark
