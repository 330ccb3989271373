// Edges from copies out to the compute lane, and copies in ahead of their readers.
#include "simulator/graph/offloaded_values.h"

#include <algorithm>

namespace tidemark {
namespace {

TensorsByOp of_offloaded(const Trace& trace, const Plan& plan, std::vector<OpId> op_of_tensor) {
  for (std::size_t t = 0; t < op_of_tensor.size(); ++t)
    if (plan.decisions[t].action != Action::Offload) op_of_tensor[t] = no_op;
  return {trace.ops.size(), op_of_tensor};
}

}  // namespace

bool offloads(const Plan& plan) {
  return !plan.left_by.empty() || !plan.fetched_at.empty() ||
         std::ranges::find(plan.decisions, Action::Offload, &Decision::action) !=
             plan.decisions.end();
}

OffloadedValues::OffloadedValues(const Trace& trace, const Plan& plan, const Needs& needs,
                                 GraphBuilder& graph, PresentValues& values)
    : plan_(plan),
      needs_(needs),
      graph_(graph),
      values_(values),
      has_lanes_(!plan.left_by.empty() || !plan.fetched_at.empty()),
      left_by_(of_offloaded(trace, plan, plan.left_by)),
      fetched_at_(of_offloaded(trace, plan, plan.fetched_at)),
      on_host_(trace.tensors.size(), no_instance),
      copied_out_by_(trace.tensors.size(), no_node) {
  if (has_lanes_) graph_.use(Lane::CopyOut), graph_.use(Lane::CopyIn);
}

void OffloadedValues::forget_all() { std::ranges::fill(on_host_, no_instance); }

void OffloadedValues::copy_out(TensorId storage) {
  Instance copy = graph_[values_.of(storage)];
  copy.on_host = true;
  copy.over = no_instance;
  on_host_[index(storage)] = graph_.add(copy);
  operation_.clear();
  operation_.read(values_.of(storage));
  operation_.write(on_host_[index(storage)]);
  const bool is_beside = !plan_.left_by.empty() && plan_.left_by[index(storage)] != no_op;
  const Lane lane = is_beside ? Lane::CopyOut : Lane::Compute;
  const NodeId node =
      graph_.append(std::nullopt, lane, needs_.producer[index(storage)], operation_);
  if (is_beside) copied_out_by_[index(storage)] = node;
}

void OffloadedValues::copy_in(TensorId storage, Lane lane) {
  operation_.clear();
  operation_.read(on_host_[index(storage)]);
  operation_.write(values_.write(storage));
  graph_.append(std::nullopt, lane, needs_.producer[index(storage)], operation_);
}

void OffloadedValues::before_forward(OpId op) {
  for (const TensorId storage : left_by_(index(op)))
    graph_.order(copied_out_by_[index(storage)], Lane::Compute);
}

void OffloadedValues::before_backward() {
  if (has_lanes_) graph_.order(graph_.last_node(Lane::CopyOut), Lane::Compute);
}

void OffloadedValues::before_gradients(OpId op) {
  for (const TensorId storage : fetched_at_(index(op)))
    if (has(storage) && !values_.is_present(storage) && values_.reads_to_come(storage) > 0)
      copy_in(storage, Lane::CopyIn);
}

}  // namespace tidemark
