// Inputs are brought back first; outputs that share a storage are one instance.
#include "simulator/graph/forward_nodes.h"

#include <algorithm>

namespace tidemark {

void ForwardNodes::append(Task task, OpId id, Lane lane) {
  const Op& op = trace_[id];
  for (const TensorId input : trace_.inputs(op))
    values_.ensure_present(trace_[input].storage, lane);
  operation_.clear();
  for (const TensorId input : trace_.inputs(op))
    operation_.read(values_.present.of(trace_[input].storage));
  const auto outputs = trace_.outputs(op);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const TensorId storage = trace_[outputs[k]].storage;
    const auto is_same = [&](TensorId other) { return trace_[other].storage == storage; };
    if (std::ranges::none_of(outputs.first(k), is_same))
      operation_.write(values_.present.write(storage));  // a kept one is written the same again
  }
  if (values_.coded && task == Task::Forward) values_.coded->note_extremes(op, operation_);
  if (const OpaqueRow* row = opaque_row(trace_, op))
    add_workspace(trace_, op, row->forward.workspace, graph_, operation_);
  graph_.append(task, lane, id, operation_);
}

void add_workspace(const Trace& trace, const Op& op, Bytes size, GraphBuilder& graph,
                   Operation& operation) {
  if (size > Bytes{})
    operation.write(graph.add({.size = size,
                               .tensor = trace.outputs(op)[0],
                               .role = Role::Temporary,
                               .category = Category::Workspace}));
}

}  // namespace tidemark
