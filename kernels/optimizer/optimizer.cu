// AdamW or SGD as one pointwise kernel, with the factors of the step computed on the host.
#include <cmath>

#include "kernels/optimizer/optimizer.cuh"
#include "kernels/optimizer/optimizer.h"

namespace tidemark::cuda {
namespace {

AdamFactors factors_of(const StepState& state) {
  const auto t = static_cast<double>(state.number + 1);
  return {.decay = static_cast<float>(1 - state.learning_rate * state.weight_decay),
          .beta1 = static_cast<float>(state.beta1),
          .fresh1 = static_cast<float>(1 - state.beta1),
          .beta2 = static_cast<float>(state.beta2),
          .fresh2 = static_cast<float>(1 - state.beta2),
          .step = static_cast<float>(state.learning_rate / (1 - std::pow(state.beta1, t))),
          .root = static_cast<float>(1 / std::sqrt(1 - std::pow(state.beta2, t))),
          .epsilon = static_cast<float>(state.epsilon)};
}

}  // namespace

void update(const Call& call, Launch& launch) {
  const Array &gradient = call.inputs[0], &parameter = call.outputs[0];
  const StepState& state = launch.state;
  if (!state.adamw) {
    const SgdStep step{static_cast<float>(state.learning_rate),
                       static_cast<float>(state.weight_decay)};
    return pointwise(launch, "sgd", PerElement<SgdStep>{step}, {&parameter, &gradient, &parameter});
  }
  const Array& both = call.outputs[1];
  const Layout layout = dense(parameter.shape);
  const std::int64_t count = numel(parameter.shape);
  CHECK(numel(both.shape) == 2 * count && is_dense(both.layout()));
  const Array first = array_at(both.data, both.dtype, layout);
  const Array second = array_at(both.data + count * size_of(both.dtype), both.dtype, layout);
  pointwise(launch, "adamw", AdamStep{factors_of(state)},
            {&parameter, &gradient, &first, &second, &parameter, &first, &second});
}

}  // namespace tidemark::cuda
