// What many backward launch functions end with: a gradient that is computed element by element,
// then summed where its input was spread.
#pragma once

#include "kernels/cuda/pointwise.cuh"
#include "kernels/cuda/reduce.cuh"

namespace tidemark::cuda {

void fill_with(Launch& launch, const Array& array, float value);

/// A function of several numbers, as one of elements.
template <typename Function>
struct PerElement {
  static constexpr int inputs = Function::inputs, outputs = 1;
  Function function;
  __device__ void operator()(const float (&x)[inputs], float (&y)[1]) const { y[0] = function(x); }
};
extern template void pointwise(Launch& launch, const char* name,
                               const PerElement<Identity>& function,
                               const Operands<PerElement<Identity>>& given);  // common_launches.cu

/// result = function(inputs), summed over the axes of `large` where the result is shorter.
template <typename Function>
void summed_to(Launch& launch, const char* name, const Function& function, const Shape& large,
               const std::array<const Array*, static_cast<std::size_t>(Function::inputs)>& inputs,
               const Array& result) {
  if (!result) return;
  if (numel(result.shape) != numel(large))
    return reduce(launch, name, function, large, inputs, result);
  std::array<const Array*, static_cast<std::size_t>(Function::inputs) + 1> operands{};
  std::copy(inputs.begin(), inputs.end(), operands.begin());
  operands.back() = &result;
  pointwise(launch, name, PerElement<Function>{function}, operands);
}

/// The gradient of an output; absent = zero.
inline const Array& d_output(const Call& call, std::size_t i = 0) { return call.d_outputs[i]; }

}  // namespace tidemark::cuda
