// A version per write; what is named longer is released later.
#include "simulator/graph/present_values.h"

namespace tidemark {

PresentValues::PresentValues(const Trace& trace, const Plan& plan, GraphBuilder& graph,
                             NamedInstances& names)
    : trace_(trace),
      plan_(plan),
      graph_(graph),
      names_(names),
      value_(trace.tensors.size(), no_instance) {}

void PresentValues::place(TensorId storage) {
  const Tensor& tensor = trace_[storage];
  value_[index(storage)] = graph_.add(
      {.size = size(tensor), .tensor = storage, .category = tensor.category, .persistent = true});
}

InstanceId PresentValues::write(TensorId storage) {
  InstanceId& value = value_[index(storage)];
  const Tensor& tensor = trace_[storage];
  value = value == no_instance
              ? graph_.add({.size = size(tensor), .tensor = storage, .category = tensor.category})
              : graph_.add_over(value);
  return value;
}

void PresentValues::name(TensorId storage, OpId until) {
  if (named_until_.empty()) named_until_.assign(trace_.tensors.size(), no_op);
  named_until_[index(storage)] = until;
}

void PresentValues::drop(TensorId storage, OpId at) {
  InstanceId& value = value_[index(storage)];
  if (value == no_instance || graph_[value].persistent) return;
  const auto& until = plan_.value_release_after.empty() ? named_until_ : plan_.value_release_after;
  names_.release(value, until.empty() ? no_op : until[index(storage)], at);
  value = no_instance;
}

}  // namespace tidemark
