// Among which ranks of the mesh an op of the trace exchanges something.
#pragma once

#include "traces/trace.h"

namespace tidemark {

/// Of ops whose work is an exchange. Pipeline stages send and receive; heads [batch, heads, tokens,
/// d] are gathered among the context ranks, which have some tokens each; all else goes between the
/// tensor-parallel ranks.
inline Axis exchange_axis(const Trace& trace, const Op& op) {
  if (op.kind == OpKind::Send || op.kind == OpKind::Receive) return Axis::Pipeline;
  const bool gathers_heads =
      op.kind == OpKind::AllGather && trace[trace.inputs(op)[0]].shape.rank() == 4;
  return gathers_heads ? Axis::Context : Axis::Tensor;
}

}  // namespace tidemark
