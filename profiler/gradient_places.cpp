// A layout is that of the output's gradient, followed back through the op that handed it on.
#include "profiler/gradient_places.h"

namespace tidemark::profiler {
namespace {

// An add's operand has the result's shape, up to axes of one element in front.
std::optional<Layout> of_addend(const Layout& sum, const Shape& shape) {
  if (numel(sum.shape) != numel(shape)) return std::nullopt;
  Layout layout{.shape = shape, .offset = sum.offset};
  std::size_t from = sum.shape.rank();
  for (std::size_t i = shape.rank(); i-- > 0;) {
    if (shape[i] == 1) continue;
    while (from > 0 && sum.shape[from - 1] == 1) --from;
    if (from == 0 || sum.shape[from - 1] != shape[i]) return std::nullopt;
    layout.strides[i] = sum.strides[--from];
  }
  return layout;
}

}  // namespace

GradientPlaces::GradientPlaces(const Trace& trace, const JointGraph& graph,
                               const std::vector<Layout>& layouts)
    : trace_(trace), graph_(graph), layouts_(layouts), memory_of_(graph.instances.size()) {
  for (std::size_t i = 0; i < memory_of_.size(); ++i) {
    const InstanceId over = graph.instances[i].over;
    memory_of_[i] = over == no_instance ? static_cast<InstanceId>(i) : memory_of_[index(over)];
  }
  for (const HandedOn& each : graph.handed_on) {
    const TensorId input = trace.inputs(trace[each.op])[each.input];
    handed_on_.emplace(key(input, each.gradient), through(each));
  }
}

bool GradientPlaces::has(TensorId tensor, InstanceId gradient) const {
  const Instance& memory = graph_[memory_of_[index(gradient)]];
  if (memory.role != Role::Gradient) return false;
  return memory.tensor == tensor || handed_on_.contains(key(tensor, gradient));
}

std::optional<Layout> GradientPlaces::of(TensorId tensor, InstanceId gradient) const {
  const Instance& memory = graph_[memory_of_[index(gradient)]];
  if (memory.role != Role::Gradient) return std::nullopt;
  if (memory.tensor == tensor) return dense_as(layouts_[index(tensor)]);
  const auto found = handed_on_.find(key(tensor, gradient));
  return found == handed_on_.end() ? std::nullopt : found->second;
}

std::optional<Layout> GradientPlaces::through(const HandedOn& gradient) const {
  const Op& op = trace_[gradient.op];
  const std::optional<Layout> of_output = of(trace_.outputs(op)[0], gradient.gradient);
  if (!of_output) return std::nullopt;
  if (gradient_rule(trace_, op, gradient.input).flow == Flow::Reduced)
    return of_addend(*of_output, trace_[trace_.inputs(op)[gradient.input]].shape);
  return back_through_view(rearrangement_of(trace_, op, gradient.input), *of_output);
}

}  // namespace tidemark::profiler
