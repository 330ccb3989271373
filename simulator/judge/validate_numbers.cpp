// Numbers the values op by op, then sends gradients back from the loss as sums of hashes.
#include "simulator/judge/validate_numbers.h"

#include <algorithm>

namespace tidemark::judge {
namespace {

// splitmix64: three different arguments never meet in practice.
std::uint64_t number_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t z = 0;
  for (const std::uint64_t part : {a, b, c}) {
    z = (z ^ part) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return z;
}

enum Tag : std::uint64_t { value_tag = 1, seed_tag, contribution_tag, part_tag };

}  // namespace

Numbers::Numbers(const Trace& trace)
    : trace_(trace),
      values_(trace.operands.size()),
      required_(trace.tensors.size()),
      gradients_(trace.tensors.size()),
      sent_(trace.operands.size()),
      received_(trace.tensors.size()) {
  number_values();
  find_required();
  if (required_[index(trace.loss)])
    gradients_[index(trace.loss)] = number_of(seed_tag, index(trace.loss), 0);
  for (std::size_t i = trace.ops.size(); i-- > 0;) add_contributions(static_cast<OpId>(i));
}

std::uint64_t Numbers::initial(TensorId storage) { return number_of(value_tag, index(storage), 0); }

// A storage that is written in place holds another value each time.
void Numbers::number_values() {
  std::vector<std::uint64_t> now(trace_.tensors.size());
  for (std::size_t t = 0; t < now.size(); ++t) now[t] = initial(static_cast<TensorId>(t));
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
    const Op& op = trace_.ops[i];
    std::size_t k = op.first_operand;
    for (const TensorId input : trace_.inputs(op)) values_[k++] = now[index(trace_[input].storage)];
    for (const TensorId output : trace_.outputs(op)) {
      const std::size_t storage = index(trace_[output].storage);
      if (!is_view(op.kind)) now[storage] = number_of(value_tag, storage, i + 1);
      values_[k++] = now[storage];
    }
  }
}

void Numbers::find_required() {
  for (std::size_t t = 0; t < required_.size(); ++t) required_[t] = trace_.tensors[t].trainable;
  for (const Op& op : trace_.ops) {
    bool any = false;
    for (std::size_t i = 0; i < op.inputs; ++i)
      any |=
          required_[index(trace_.inputs(op)[i])] && gradient_rule(trace_, op, i).flow != Flow::None;
    for (const TensorId output : trace_.outputs(op))
      if (any && is_floating(trace_[output].dtype)) required_[index(output)] = true;
  }
}

void Numbers::add_contributions(OpId id) {
  const Op& op = trace_[id];
  const auto outputs = trace_.outputs(op);
  if (std::ranges::none_of(outputs, [&](TensorId output) { return has_gradient(output); })) return;
  for (std::size_t i = 0; i < op.inputs; ++i) {
    const TensorId input = trace_.inputs(op)[i];
    const Flow flow = gradient_rule(trace_, op, i).flow;
    if (!required_[index(input)] || flow == Flow::None) continue;
    const Tensor &in = trace_[input], &out = trace_[outputs[0]];
    Contribution c{id, flow == Flow::Fresh || in.dtype != out.dtype, gradients_[index(outputs[0])]};
    if (flow == Flow::Reduced && size(in) != size(out)) c.is_fresh = true;
    if (c.is_fresh)
      c.number = number_of(contribution_tag, index(id), i);
    else if (size(in) != size(out))
      c.number = number_of(part_tag, c.number, i);
    gradients_[index(input)] += c.number;
    sent_[op.first_operand + i] = c;
    received_[index(input)].push_back(c);
  }
}

bool Numbers::has_backward(const Op& op) const {
  for (std::size_t i = 0; i < op.inputs; ++i)
    if (contribution(op, i).is_fresh) return true;
  return false;
}

bool Numbers::holds_gradient(std::uint64_t number, TensorId tensor) const {
  while (number != gradient(tensor)) {
    const auto& only = contributions(tensor);
    if (only.size() != 1 || only[0].is_fresh) return false;
    tensor = trace_.outputs(trace_[only[0].op])[0];
  }
  return true;
}

}  // namespace tidemark::judge
