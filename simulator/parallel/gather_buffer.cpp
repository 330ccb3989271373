// A linear's first input is what is gathered for it.
#include "simulator/parallel/gather_buffer.h"

#include "traces/exchange_axis.h"

namespace tidemark {

TensorId gathered_in_place(const Trace& trace) {
  const Framework& framework = find_framework(trace.step.framework);
  if (!framework.megatron || !trace.step.sequence_parallel) return no_tensor;
  if (trace.step.schedule && trace.step.schedule->splits_backward()) return no_tensor;
  std::vector<bool> is_gathered(trace.tensors.size());
  TensorId last = no_tensor;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::AllGather && exchange_axis(trace, op) == Axis::Tensor)
      is_gathered[index(trace.outputs(op)[0])] = true;
    const bool is_engine = framework.transformer_engine && op.block >= 0;
    if (op.kind != OpKind::Linear || is_engine) continue;
    if (const TensorId x = trace.inputs(op)[0]; is_gathered[index(x)]) last = x;
  }
  return last;
}

}  // namespace tidemark
