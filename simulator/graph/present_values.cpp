// Ends each value's forward as the plan says, and brings it back from the host or from its codes.
#include "simulator/graph/present_values.h"

#include <algorithm>
#include <utility>

namespace tidemark {

PresentValues::PresentValues(const Trace& trace, const Plan& plan, const Needs& needs,
                             GraphBuilder& graph, NamedInstances& names)
    : trace_(trace),
      plan_(plan),
      needs_(needs),
      graph_(graph),
      names_(names),
      value_(trace.tensors.size(), no_instance),
      on_host_(trace.tensors.size(), no_instance),
      coded_(trace.tensors.size()) {}

void PresentValues::expect(const std::vector<std::uint32_t>& reads) {
  reads_ = reads;
  std::ranges::fill(on_host_, no_instance);  // those of the micro-batch before are of no use
}

void PresentValues::place(TensorId storage) {
  const Tensor& tensor = trace_[storage];
  value_[index(storage)] = graph_.add(
      {.size = size(tensor), .tensor = storage, .category = tensor.category, .persistent = true});
}

InstanceId PresentValues::add(TensorId storage) {
  const Tensor& tensor = trace_[storage];
  return graph_.add({.size = size(tensor), .tensor = storage, .category = tensor.category});
}

InstanceId PresentValues::write(TensorId storage) {
  InstanceId& value = value_[index(storage)];
  value = value == no_instance ? add(storage) : graph_.add_over(value);
  return value;
}

void PresentValues::ensure_present(TensorId storage, Lane lane) {
  if (is_present(storage)) return;
  const InstanceId copy = on_host_[index(storage)];
  if (copy == no_instance) {
    CHECK(coded_[index(storage)].codes != no_instance);
    return dequantize(coded_[index(storage)], storage, lane);
  }
  value_[index(storage)] = add(storage);
  operation_.clear();
  operation_.read(copy);
  operation_.write(of(storage));
  graph_.append(std::nullopt, lane, needs_.producer[index(storage)], operation_);
}

void PresentValues::end_forward(TensorId storage, bool is_made_again) {
  const std::size_t s = index(storage);
  if (reads_[s] == 0 || is_made_again) return drop(storage, no_op);
  switch (plan_.decisions[s].action) {
    case Action::Keep:
      return;
    case Action::Quantize:
      quantize(storage, coded_[s]);
      break;
    case Action::Offload:
      copy_out(storage);
      break;
    case Action::Recompute:
    case Action::Reconstruct:
      break;
  }
  drop(storage, no_op);
}

void PresentValues::copy_out(TensorId storage) {
  Instance copy = graph_[of(storage)];
  copy.on_host = true;
  copy.over = no_instance;
  on_host_[index(storage)] = graph_.add(copy);
  operation_.clear();
  operation_.read(of(storage));
  operation_.write(on_host_[index(storage)]);
  const bool is_beside = !plan_.left_by.empty() && plan_.left_by[index(storage)] != no_op;
  const Lane lane = is_beside ? Lane::CopyOut : Lane::Compute;
  const NodeId node =
      graph_.append(std::nullopt, lane, needs_.producer[index(storage)], operation_);
  if (!is_beside) return;
  copied_out_by_.resize(trace_.tensors.size(), no_node);
  copied_out_by_[index(storage)] = node;
}

void PresentValues::forget(TensorId storage, OpId at) {
  drop(storage, at);
  const InstanceId codes = std::exchange(coded_[index(storage)].codes, no_instance);
  if (codes != no_instance) graph_.release(codes);
}

void PresentValues::drop(TensorId storage, OpId at) {
  InstanceId& value = value_[index(storage)];
  if (value == no_instance || graph_[value].persistent) return;
  const auto& until = plan_.value_release_after;
  names_.release(value, until.empty() ? no_op : until[index(storage)], at);
  value = no_instance;
}

void PresentValues::read_value_or_codes(TensorId storage, Operation& operation) const {
  if (is_present(storage)) return operation.read(of(storage));
  operation.read(coded_[index(storage)].codes);
  operation.read(coded_[index(storage)].ranges);
}

void PresentValues::note_extremes(TensorId storage, Operation& operation) {
  operation.write(next_ranges(coded_[index(storage)].ranges));
}

InstanceId PresentValues::add_ranges(TensorId storage) {
  return graph_.add({.size = size_of_ranges(encoding_of(plan_, storage), trace_[storage].shape),
                     .tensor = storage,
                     .role = Role::Ranges,
                     .persistent = true,
                     .encoding = plan_.decisions[index(storage)].encoding});
}

// Ranges run: each quantization is over the one before, in this step or the last.
InstanceId PresentValues::next_ranges(InstanceId& ranges) {
  CHECK(ranges != no_instance);
  return ranges = graph_.add_over(ranges);
}

void PresentValues::quantize(TensorId storage, Coded& coded) {
  operation_.clear();
  operation_.read(of(storage));
  add_copy_by_group(storage);
  coded.codes =
      graph_.add({.size = size_of_codes(encoding_of(plan_, storage), trace_[storage].shape),
                  .tensor = storage,
                  .role = Role::Codes,
                  .encoding = plan_.decisions[index(storage)].encoding});
  operation_.write(coded.codes);
  operation_.write(next_ranges(coded.ranges));
  graph_.append(Task::Quantize, Lane::Compute, needs_.producer[index(storage)], operation_);
}

void PresentValues::dequantize(const Coded& coded, TensorId storage, Lane lane) {
  operation_.clear();
  operation_.read(coded.codes);
  operation_.read(coded.ranges);
  add_copy_by_group(storage);
  value_[index(storage)] = add(storage);
  operation_.write(of(storage));
  graph_.append(Task::Dequantize, lane, needs_.producer[index(storage)], operation_);
}

// Mesa's published code makes room for the values in the order of their groups first.
void PresentValues::add_copy_by_group(TensorId storage) {
  if (!plan_.quirks.copies_by_group) return;
  operation_.write(graph_.add({.size = size(trace_[storage]),
                               .tensor = storage,
                               .role = Role::Temporary,
                               .category = Category::Temporary}));
}

}  // namespace tidemark
