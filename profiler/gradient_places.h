// Where in a gradient's memory each tensor that shares it has its own: a residual add, a view and a
// concatenation hand their gradient on without touching it, so one memory may hold the gradients
// of a whole chain of tensors, each with strides of its own.
#pragma once

#include <optional>
#include <unordered_map>

#include "simulator/graph/joint_graph.h"
#include "traces/layout_transform.h"
#include "traces/trace.h"

namespace tidemark::profiler {

class GradientPlaces {
 public:
  /// `layouts`: value_layouts(trace). All three must outlive this.
  GradientPlaces(const Trace& trace, const JointGraph& graph, const std::vector<Layout>& layouts);

  /// The tensor's gradient in that instance's memory, or nothing if it does not lie there, or has
  /// no strides. Where the tensor was spread over an axis, the layout has that axis in full: it is
  /// still to be summed.
  std::optional<Layout> of(TensorId tensor, InstanceId gradient) const;
  /// Does the tensor's gradient lie there, with strides or without?
  bool has(TensorId tensor, InstanceId gradient) const;

 private:
  std::optional<Layout> through(const HandedOn& gradient) const;
  std::uint64_t key(TensorId tensor, InstanceId gradient) const {
    return std::uint64_t{index(memory_of_[index(gradient)])} << 32 | index(tensor);
  }

  const Trace& trace_;
  const JointGraph& graph_;
  const std::vector<Layout>& layouts_;
  std::vector<InstanceId> memory_of_;  ///< by instance: its first version
  std::unordered_map<std::uint64_t, std::optional<Layout>> handed_on_;
};

}  // namespace tidemark::profiler
