// Among which ranks of the mesh an op of the trace exchanges something.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Context ranks that exchange heads: an opaque op that takes [batch, heads, tokens, d], of its own
/// tokens and all heads, to all tokens of its own heads, or back.
inline constexpr std::string_view head_exchange = "c10d::all_to_all_single";
inline bool exchanges_heads(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row && row->operation == head_exchange;
}

/// Keys and values of the part of the tokens at hand, and of the next one, which is on its way.
inline constexpr std::int64_t parts_of_ring = 2;
inline bool passes_keys_around(const StepOptions& step) {
  return step.context_form == ContextForm::Ring && step.mesh[Axis::Context] > 1;
}
/// How many times as many keys an attention meets as its operand has at once.
inline double rounds_of_keys(const StepOptions& step) {
  if (!passes_keys_around(step)) return 1;
  return static_cast<double>(step.mesh[Axis::Context]) / static_cast<double>(parts_of_ring);
}

/// Visits of experts are rows; all else that is gathered or scattered has more dimensions.
inline bool moves_visits(const Trace& trace, const Op& op) {
  return (op.kind == OpKind::AllGather || op.kind == OpKind::ReduceScatter) &&
         trace[trace.inputs(op)[0]].shape.rank() == 2;
}

/// Of ops whose work is an exchange. Pipeline stages send and receive; heads [batch, heads, tokens,
/// d] are gathered among the context ranks, which have some tokens each; all else goes between the
/// tensor-parallel ranks.
inline Axis exchange_axis(const Trace& trace, const Op& op) {
  if (op.kind == OpKind::Send || op.kind == OpKind::Receive) return Axis::Pipeline;
  if (exchanges_heads(trace, op)) return Axis::Context;
  const bool gathers_heads =
      op.kind == OpKind::AllGather && trace[trace.inputs(op)[0]].shape.rank() == 4;
  return gathers_heads ? Axis::Context : Axis::Tensor;
}

}  // namespace tidemark
