// Follows readers to the tensor that a buffer is named after, then its layout back through views.
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

GradientPlaces::GradientPlaces(const Trace& trace, const Schedule& schedule,
                               const std::vector<Layout>& layouts)
    : trace_(trace), schedule_(schedule), layouts_(layouts), consumers_(trace) {}

std::optional<Layout> GradientPlaces::of(TensorId tensor, BufferId buffer) {
  const Buffer& memory = schedule_[buffer];
  if (memory.role != Role::Gradient) return std::nullopt;
  return find(tensor, memory.tensor, known_[static_cast<std::uint32_t>(memory.tensor)]);
}

// A buffer is named after the tensor whose gradient was written to it; what is upstream of that one
// finds its own by following those who read it.
std::optional<Layout> GradientPlaces::find(TensorId tensor, TensorId name, Known& known) {
  if (tensor == name) return dense_as(layouts_[index(tensor)]);
  const auto [entry, is_new] = known.try_emplace(static_cast<std::uint32_t>(tensor));
  if (!is_new) return entry->second;
  for (const OpId reader : consumers_(tensor)) {
    const Op& op = trace_[reader];
    const auto inputs = trace_.inputs(op);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != tensor) continue;
      if (const auto found = through(op, i, name, known)) {
        known[static_cast<std::uint32_t>(tensor)] = found;
        return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<Layout> GradientPlaces::through(const Op& op, std::size_t input, TensorId name,
                                              Known& known) {
  const Flow flow = gradient_rule(trace_, op, input).flow;
  if (flow != Flow::Alias && flow != Flow::Reduced) return std::nullopt;
  const TensorId output = trace_.outputs(op)[0];
  const Tensor& read = trace_[trace_.inputs(op)[input]];
  if (read.dtype != trace_[output].dtype) return std::nullopt;
  const auto of_output = find(output, name, known);
  if (!of_output) return std::nullopt;
  if (flow == Flow::Reduced) return of_addend(*of_output, read.shape);
  return back_through_view(rearrangement_of(trace_, op, input), *of_output);
}

}  // namespace tidemark::profiler
