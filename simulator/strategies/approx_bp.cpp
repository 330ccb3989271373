// Approx-BP (arXiv 2406.16282, section 4.1): the forward stays the exact GELU or SiLU; the backward
// uses a step function with four levels, so two bits per element replace the saved input.
#include "simulator/strategies/block_list.h"
#include "simulator/strategies/trace_edit.h"

namespace tidemark {
namespace {

bool is_activation(OpKind kind) {
  return kind == OpKind::Gelu || kind == OpKind::GeluComposed || kind == OpKind::Silu;
}

OpKind two_bit_form(OpKind kind) {
  return kind == OpKind::Silu ? OpKind::ReSilu2 : OpKind::ReGelu2;
}

// Four codes per byte, element 0 in the lowest bits.
Tensor codes_of(Name name, const Tensor& y) {
  return {.name = name, .shape = {round_up(numel(y.shape), 4) / 4}, .dtype = DType::UInt8};
}

}  // namespace

Rewritten rewrite_activations(const Trace& trace, const StrategyArguments& arguments) {
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
    if (!is_activation(op.kind) || !is_meant[block]) {
      edit.copy(id);
      continue;
    }
    found = true;
    edit.copy_as(id, two_bit_form(op.kind), 1, 1,
                 {codes_of(edit.name(op.name + ".codes"), trace[trace.outputs(op)[0]])});
  }
  if (!found) return "no GELU or SiLU in this trace";
  return edit.finish();
}

}  // namespace tidemark
