// By the backward formulas of PyTorch 2.6 (tools/autograd/derivatives.yaml), checked against which
// storages came and went in its own steps (scripts/capture_steps).
#include "simulator/graph/inner_tensors.h"

#include <algorithm>

#include "traces/framework.h"

namespace tidemark {
namespace {

constexpr std::uint32_t of_first = 1, of_second = 2;

std::int64_t bytes_of(const Trace& trace, TensorId tensor) { return size(trace[tensor]).count; }

// The weight's gradient: dy times the normalized x, which is a tensor until its columns are added
// up. Then x's: beside dn · rstd, which is the op's own, there are the gradient of the mean spread
// over each row, x to the power of one, twice that, and their product (MeanBackward, PowBackward);
// dy and the normalized x are gone by then.
InnerTensors of_rms_norm(const Trace& trace, const Op& op, const BackwardCall& call) {
  const std::int64_t x = bytes_of(trace, trace.inputs(op)[0]);
  const std::int64_t y = bytes_of(trace, trace.outputs(op)[0]);
  const std::int64_t normalized = bytes_of(trace, trace.outputs(op)[2]);
  const bool of_x = (call.gradients & of_first) != 0;
  const bool of_weight = (call.gradients & of_second) != 0;
  const std::int64_t gone = (call.keeps_dy ? 0 : y) + (of_weight ? normalized : 0);
  const std::int64_t for_weight = of_weight ? y : 0, for_x = of_x ? 4 * x - gone : 0;
  InnerTensors inner;
  if (for_x <= for_weight) {
    inner.add(for_weight);
    return inner;
  }
  for (std::int64_t left = for_x; left > 0; left -= x) inner.add(std::min(left, x));
  return inner;
}

// A weight per channel: dy times x first, in their wider dtype. What a factor in 16 bits gets is of
// that dtype, too, until the backward has returned: beside dy, or where others keep dy beside its
// cast, when the other product is gone.
InnerTensors of_product(const Trace& trace, const Op& op, const BackwardCall& call) {
  const TensorId y = trace.outputs(op)[0];
  const std::int64_t whole = bytes_of(trace, y);
  std::int64_t products = 0, wide = 0, narrow = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if ((call.gradients >> i & 1) == 0) continue;
    const TensorId x = trace.inputs(op)[i];
    const bool is_weight = numel(trace[x].shape) < numel(trace[y].shape);
    if (is_weight) products += whole;
    if (!is_weight && bytes_of(trace, x) < whole) wide += whole, narrow += bytes_of(trace, x);
  }
  InnerTensors inner;
  if (products > 0) inner.add(products);
  inner.add(products == 0 && call.keeps_dy ? wide : wide - narrow);
  return inner;
}

// y = half · one_plus, whose two gradients are there at once, and only one of them goes on as the
// op's own. That of a half in 16 bits is cast from fp32 when the backward has returned, before both
// factors are released; what a checkpoint has handed out is gone then.
InnerTensors of_gelu(const Trace& trace, const Op& op, const BackwardCall& call) {
  InnerTensors inner;
  inner.add(bytes_of(trace, trace.outputs(op)[0]));
  if (!call.made_again) inner.add(saved_by_running_again(trace, op).count);
  return inner;
}

// y = x / share · kept, of each sample: the product's gradient is there until it is divided, by
// when dy is gone unless others keep it.
InnerTensors of_drop_path(const Trace& trace, const Op& op, const BackwardCall& call) {
  InnerTensors inner;
  if (call.keeps_dy) inner.add(bytes_of(trace, trace.inputs(op)[0]));
  return inner;
}

// The softmax less one at each target, in fp32: a tensor of its own, because what torch.compile
// makes changes single elements of a copy (core/fusions/fused_cross_entropy.py under PyTorch 2.6).
bool copies_softmax(const Trace& trace, const Op& op) {
  return op.kind == OpKind::VocabularyLoss &&
         trace[trace.outputs(op)[1]].storage != trace[trace.inputs(op)[0]].storage;
}

InnerTensors of_native_loss(const Trace& trace, const Op& op) {
  InnerTensors inner;
  inner.add(bytes_of(trace, trace.outputs(op)[1]));
  return inner;
}

}  // namespace

bool has_inner_tensors(const Trace& trace, const Op& op) {
  const bool is_composed = op.kind == OpKind::GeluComposed || op.kind == OpKind::Mul ||
                           op.kind == OpKind::DropPath ||
                           (op.kind == OpKind::RmsNorm && op.outputs > 2);
  return copies_softmax(trace, op) ||
         (is_composed && find_framework(trace.step.framework).op_scratch);
}

InnerTensors inner_tensors(const Trace& trace, const Op& op, const BackwardCall& call) {
  if (!has_inner_tensors(trace, op)) return {};
  if (op.kind == OpKind::VocabularyLoss) return of_native_loss(trace, op);
  if (op.kind == OpKind::RmsNorm) return of_rms_norm(trace, op, call);
  if (op.kind == OpKind::DropPath) return of_drop_path(trace, op, call);
  return op.kind == OpKind::Mul ? of_product(trace, op, call) : of_gelu(trace, op, call);
}

Bytes saved_by_running_again(const Trace& trace, const Op& op) {
  if (op.kind != OpKind::GeluComposed || !has_inner_tensors(trace, op)) return {};
  const Tensor &y = trace[trace.outputs(op)[0]], &half = trace[trace.outputs(op)[2]];
  return half.dtype == y.dtype ? Bytes{} : size(half);
}

}  // namespace tidemark
