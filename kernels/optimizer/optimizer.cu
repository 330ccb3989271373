// AdamW or SGD with the factors of the step computed on the host: AdamW's dense parameters many to
// a launch, all others by a pointwise kernel each.
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

/// The arrays of one parameter.
struct AdamArrays {
  Array parameter, gradient, first, second;
};

AdamArrays arrays_of(const Array& parameter, const Array& gradient, const Array& both) {
  const Layout layout = dense(parameter.shape);
  const std::int64_t count = numel(parameter.shape);
  CHECK(numel(both.shape) == 2 * count && is_dense(both.layout()));
  return {parameter, gradient, array_at(both.data, both.dtype, layout),
          array_at(both.data + count * size_of(both.dtype), both.dtype, layout)};
}

bool is_aligned(const Array& array) {
  return reinterpret_cast<std::uintptr_t>(array.data) % 16 == 0;
}

/// Collects parameters of one dtype and launches them when no more fit, and at last.
template <typename T>
class AdamLauncher {
 public:
  AdamLauncher(Launch& launch, const AdamStep& step) : launch_(launch), step_(step) {}

  /// False if it is not this kernel's: nothing was done.
  bool take(const AdamArrays& a) {
    const std::array<const Array*, 4> all = {&a.parameter, &a.gradient, &a.first, &a.second};
    for (const Array* array : all)
      if (array->dtype != a.parameter.dtype || !is_dense(array->layout()) || !is_aligned(*array))
        return false;
    const std::int64_t count = numel(a.parameter.shape);
    if (count == 0) return true;
    parameters_.of[parameters_.count++] = {elements<T>(a.parameter),
                                           elements<const T>(a.gradient),
                                           elements<T>(a.first),
                                           elements<T>(a.second),
                                           count,
                                           parameters_.blocks};
    parameters_.blocks += static_cast<unsigned>((count + adam_block<T> - 1) / adam_block<T>);
    if (parameters_.count == parameters_per_launch) flush();
    return true;
  }

  void flush() {
    if (parameters_.count > 0)
      start(launch_, "adamw", adam_kernel<T>, dim3(parameters_.blocks), dim3(usual_threads), 0,
            step_, parameters_);
    parameters_ = {};
  }

 private:
  Launch& launch_;
  const AdamStep& step_;
  AdamParameters<T> parameters_;
};

void adamw(const Call& call, Launch& launch) {
  const AdamStep step{factors_of(launch.state)};
  AdamLauncher<float> of_fp32(launch, step);
  AdamLauncher<BFloat16> of_bf16(launch, step);
  AdamLauncher<Float16> of_fp16(launch, step);
  const std::size_t each = outputs_per_parameter(call);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const AdamArrays a =
        arrays_of(call.outputs[i * each], call.inputs[i], call.outputs[i * each + 1]);
    const DType dtype = a.parameter.dtype;
    const bool is_taken = dtype == DType::Float32    ? of_fp32.take(a)
                          : dtype == DType::BFloat16 ? of_bf16.take(a)
                                                     : of_fp16.take(a);
    if (!is_taken)
      pointwise(
          launch, "adamw", step,
          {&a.parameter, &a.gradient, &a.first, &a.second, &a.parameter, &a.first, &a.second});
  }
  of_fp32.flush(), of_bf16.flush(), of_fp16.flush();
}

}  // namespace

void update(const Call& call, Launch& launch) {
  const StepState& state = launch.state;
  if (!state.updates) return;
  if (call.optimizer == Optimizer::AdamW && !call.settings.masters) return adamw(call, launch);
  const std::size_t each = outputs_per_parameter(call);
  if (call.optimizer != Optimizer::Sgd) {
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      update_otherwise(call, call.inputs[i], &call.outputs[i * each], launch);
    return;
  }
  const SgdStep step{static_cast<float>(state.learning_rate),
                     static_cast<float>(state.weight_decay)};
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Array& parameter = call.outputs[i * each];
    pointwise(launch, "sgd", PerElement<SgdStep>{step}, {&parameter, &call.inputs[i], &parameter});
  }
}

}  // namespace tidemark::cuda
