// A model that runs a second time, frozen, to say what the trained one is compared with: a second
// one in memory, or the base that lies under adapters; and parts of one that run again for further
// tokens.
#include <algorithm>

#include "traces/trace_builder.h"

namespace tidemark {
namespace {

constexpr std::string_view prefix = "reference.";

std::string prefixed(std::string_view name) {
  return name.starts_with(prefix) ? std::string(name) : std::string(prefix) + std::string(name);
}

}  // namespace

std::string TraceBuilder::name_in_model(const std::string& name) const {
  return in_reference_ ? prefixed(name) : further_token_ + name;
}

bool TraceBuilder::is_of_second_model(TensorId x) const {
  return trace_[x].name.starts_with(prefix);
}

void TraceBuilder::begin_reference() {
  end_autocast();  // of the model that was trained
  in_reference_ = true;
}

void TraceBuilder::end_reference() {
  end_autocast();
  in_reference_ = false;
}

void TraceBuilder::begin_further_token(std::int64_t ahead, bool is_plain) {
  is_further_plain_ = is_plain;
  further_token_ = "ahead" + std::to_string(ahead) + ".";
}

// Adapters are disabled, and what they are beside is there already.
std::optional<TensorId> TraceBuilder::given_to_reference(std::string_view name) const {
  return in_reference_ ? tensor_called(name) : std::nullopt;
}

std::optional<TensorId> TraceBuilder::tensor_called(std::string_view name) const {
  const auto found = std::ranges::find(trace_.tensors, name, &Tensor::name);
  if (found == trace_.tensors.end()) return {};
  return static_cast<TensorId>(found - trace_.tensors.begin());
}

// What belongs to a module and is not trained: of a second model, one more.
TensorId TraceBuilder::buffer(std::string_view name, const Shape& shape, DType dtype) {
  const bool is_second = in_reference_ && !has_adapters(step().tuning);
  const std::string full = is_second ? prefixed(name) : std::string(name);
  if (in_reference_ || further_token_.empty()) return input(full, shape, dtype);
  if (const std::optional<TensorId> known = tensor_called(full)) return *known;
  return add_external({.name = trace_.names.add(full),
                       .shape = shape,
                       .dtype = dtype,
                       .category = Category::Input});
}

TensorId TraceBuilder::reference_parameter(std::string_view name, const Shape& shape, DType dtype) {
  if (has_adapters(step().tuning)) {
    const std::optional<TensorId> found = given_to_reference(name);
    CHECK(found);
    return *found;
  }
  return add_external({.name = trace_.names.add(prefixed(name)),
                       .shape = shape,
                       .dtype = dtype,
                       .category = Category::Parameter});
}

// Its cache of weights names each copy until the context is left.
void TraceBuilder::end_autocast() {
  for (const TensorId copy : weight_casts_)
    if (copy != no_tensor && framework_.holds_locals)
      trace_.tensors[index(copy)].held_until = static_cast<OpId>(trace_.ops.size() - 1);
  weight_casts_.clear();
}

}  // namespace tidemark
