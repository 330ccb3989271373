// Broadcast arithmetic by pointwise kernels; gradients are summed over repeated axes.
#include "kernels/elementwise/elementwise.cuh"
#include "kernels/elementwise/elementwise.h"

namespace tidemark::cuda {

void add_forward(const Call& call, Launch& launch) {
  watched_pointwise(launch, "add", PerElement<AddFunction>{},
                    {&call.inputs[0], &call.inputs[1], &call.outputs[0]});
}

void add_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  for (const Array& dx : call.d_inputs)
    dy ? summed_to(launch, "add backward", Identity{}, dy.shape, {&dy}, dx)
       : fill_with(launch, dx, 0);
}

void mul_forward(const Call& call, Launch& launch) {
  watched_pointwise(launch, "mul", PerElement<MulFunction>{},
                    {&call.inputs[0], &call.inputs[1], &call.outputs[0]});
}

void mul_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  for (std::size_t i = 0; i < call.d_inputs.size(); ++i)
    dy ? summed_to(launch, "mul backward", MulFunction{}, dy.shape, {&dy, &call.inputs[1 - i]},
                   call.d_inputs[i])
       : fill_with(launch, call.d_inputs[i], 0);
}

void scale_forward(const Call& call, Launch& launch) {
  const ScaleFunction scale{static_cast<float>(call.settings.factor)};
  watched_pointwise(launch, "scale", PerElement<ScaleFunction>{scale},
                    {&call.inputs[0], &call.outputs[0]});
  if (call.outputs.size() > 1 && call.outputs[1])
    start(launch, "scale", set_double_kernel, dim3(1), dim3(1), 0,
          elements<double>(call.outputs[1]), call.settings.factor);
}

void scale_backward(const Call& call, Launch& launch) {
  const ScaleFunction scale{static_cast<float>(call.settings.factor)};
  pointwise(launch, "scale backward", PerElement<ScaleFunction>{scale},
            {&call.d_outputs[0], &call.d_inputs[0]});
}

void average_forward(const Call& call, Launch& launch) {
  CHECK(call.inputs.size() <= AverageFunction::inputs);
  const Array absent;
  std::array<const Array*, AverageFunction::inputs + 1> operands;
  operands.fill(&absent);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) operands[i] = &call.inputs[i];
  operands.back() = &call.outputs[0];
  pointwise(launch, "average",
            PerElement<AverageFunction>{{static_cast<float>(call.inputs.size())}}, operands);
}

void average_backward(const Call& call, Launch& launch) {
  const ScaleFunction scale{1.0f / static_cast<float>(call.inputs.size())};
  for (const Array& dx : call.d_inputs)
    pointwise(launch, "average backward", PerElement<ScaleFunction>{scale},
              {&call.d_outputs[0], &dx});
}

void cast_forward(const Call& call, Launch& launch) {
  pointwise(launch, "cast", PerElement<Identity>{}, {&call.inputs[0], &call.outputs[0]});
}

void cast_backward(const Call& call, Launch& launch) {
  pointwise(launch, "cast backward", PerElement<Identity>{},
            {&call.d_outputs[0], &call.d_inputs[0]});
}

}  // namespace tidemark::cuda
