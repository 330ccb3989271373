// Edges from copies out to the compute lane, and copies in ahead of their readers.
#include "simulator/graph/transfers.h"

namespace tidemark {
namespace {

TensorsByOp of_offloaded(const Trace& trace, const Plan& plan, std::vector<OpId> op_of_tensor) {
  for (std::size_t t = 0; t < op_of_tensor.size(); ++t)
    if (plan.decisions[t].action != Action::Offload) op_of_tensor[t] = no_op;
  return {trace.ops.size(), op_of_tensor};
}

}  // namespace

Transfers::Transfers(const Trace& trace, const Plan& plan, GraphBuilder& graph,
                     PresentValues& values)
    : has_any_(!plan.left_by.empty() || !plan.fetched_at.empty()),
      graph_(graph),
      values_(values),
      left_by_(of_offloaded(trace, plan, plan.left_by)),
      fetched_at_(of_offloaded(trace, plan, plan.fetched_at)) {
  if (has_any_) graph_.use(Lane::CopyOut), graph_.use(Lane::CopyIn);
}

void Transfers::before_forward(OpId op) {
  if (!has_any_) return;
  for (const TensorId storage : left_by_(index(op)))
    graph_.order(values_.copied_out_by(storage), Lane::Compute);
}

void Transfers::before_backward() {
  if (has_any_) graph_.order(graph_.last_node(Lane::CopyOut), Lane::Compute);
}

void Transfers::before_gradients(OpId op) {
  if (!has_any_) return;
  for (const TensorId storage : fetched_at_(index(op)))
    if (values_.is_on_host(storage) && values_.reads_to_come(storage) > 0)
      values_.ensure_present(storage, Lane::CopyIn);
}

}  // namespace tidemark
