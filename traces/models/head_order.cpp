// Elementwise kernels write in the order of what they read; what is joined, copied or repeated is
// dense (TensorIterator and cat of PyTorch 2.6).
#include "traces/models/head_order.h"

#include <algorithm>

namespace tidemark {
namespace {

// Near the end: this is asked while the attention is being built.
const Op* producer(const Trace& trace, TensorId id) {
  for (auto op = trace.ops.rbegin(); op != trace.ops.rend(); ++op)
    if (std::ranges::find(trace.outputs(*op), id) != trace.outputs(*op).end()) return &*op;
  return nullptr;
}

bool splits_heads(const Trace& trace, const Op& op) {
  return attribute(trace, op, AttributeKey::LayoutTransform) ==
         static_cast<double>(LayoutTransform::SplitHeads);
}

}  // namespace

HeadOrder head_order(const TraceBuilder& b, TensorId heads) {
  const Op* op = producer(b.trace(), heads);
  if (op == nullptr || splits_heads(b.trace(), *op)) return HeadOrder::ByToken;
  const OpKind kind = op->kind;
  const bool is_by_token = kind == OpKind::RepeatHeads && b.framework().torchtitan;
  if (kind == OpKind::Copy || kind == OpKind::Concat ||
      (kind == OpKind::RepeatHeads && !is_by_token))
    return HeadOrder::ByHead;
  return head_order(b, b.trace().inputs(*op)[0]);
}

}  // namespace tidemark
