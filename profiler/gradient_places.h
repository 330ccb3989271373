// Where in a gradient's memory each tensor that shares it has its own: a residual add, a view and a
// concatenation hand their gradient on without touching it, so one buffer may hold the gradients
// of a whole chain of tensors, each with strides of its own.
#pragma once

#include <optional>
#include <unordered_map>

#include "simulator/schedule.h"
#include "simulator/strategies/consumers.h"
#include "traces/layout_transform.h"

namespace tidemark::profiler {

class GradientPlaces {
 public:
  /// `layouts`: value_layouts(trace). All three must outlive this.
  GradientPlaces(const Trace& trace, const Schedule& schedule, const std::vector<Layout>& layouts);

  /// The tensor's gradient in that buffer, or nothing if the buffer cannot hold it. Where the
  /// tensor was spread over an axis, the layout has that axis in full: it is still to be summed.
  std::optional<Layout> of(TensorId tensor, BufferId buffer);

 private:
  using Known = std::unordered_map<std::uint32_t, std::optional<Layout>>;

  std::optional<Layout> find(TensorId tensor, TensorId name, Known& known);
  std::optional<Layout> through(const Op& op, std::size_t input, TensorId name, Known& known);

  const Trace& trace_;
  const Schedule& schedule_;
  const std::vector<Layout>& layouts_;
  const Consumers consumers_;
  std::unordered_map<std::uint32_t, Known> known_;  ///< by the tensor that a buffer is named after
};

}  // namespace tidemark::profiler
