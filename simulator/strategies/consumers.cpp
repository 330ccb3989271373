// Builds the index in two counting passes over the ops.
#include "simulator/strategies/consumers.h"

namespace tidemark {

Consumers::Consumers(const Trace& trace) : begin_(trace.tensors.size() + 1) {
  for (const Op& op : trace.ops)
    for (const TensorId input : trace.inputs(op)) ++begin_[index(input) + 1];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) begin_[t + 1] += begin_[t];
  ops_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId input : trace.inputs(trace.ops[i]))
      ops_[next[index(input)]++] = static_cast<OpId>(i);
}

}  // namespace tidemark
