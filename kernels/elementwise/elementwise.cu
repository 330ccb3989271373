// Broadcast arithmetic by pointwise kernels; gradients are summed over repeated axes.
#include "kernels/boolean.h"
#include "kernels/elementwise/elementwise.cuh"
#include "kernels/elementwise/elementwise.h"

namespace tidemark::cuda {
namespace {

template <typename T>
__device__ inline float number(T x) {
  if constexpr (std::is_same_v<T, Boolean>)
    return to_float(x);
  else
    return to_fp32(x);
}

template <typename T>
__device__ inline T stored_as(float x) {
  if constexpr (std::is_same_v<T, Boolean>)
    return to_boolean(x);
  else
    return rounded_to<T>(x);
}

template <typename From, typename To>
__global__ void cast_mask_kernel(const From* from, To* to, Walk<2> walk) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const Place<2> at = walk.template place<1>(i);
    to[at.offset[1]] = stored_as<To>(number(from[at.offset[0]]));
  }
}

template <typename From, typename To>
void cast_mask(Launch& launch, const Array& from, const Array& to) {
  const Walk<2> walk(merged(axes_over<2>(to.shape, {&from, &to}), 1), 1);
  start(launch, "cast", cast_mask_kernel<From, To>, dim3(blocks_for(launch, walk.vectors)),
        dim3(usual_threads), 0, elements<const From>(from), elements<To>(to), walk);
}

// Booleans on one side, numbers on the other.
void cast_mask(Launch& launch, const Array& from, const Array& to) {
  const bool makes_mask = to.dtype == DType::Bool;
  with_dtype_of(std::array{makes_mask ? &from : &to}, [&](auto tag) {
    using Number = typename decltype(tag)::type;
    if constexpr (std::is_same_v<Number, AnyFloat>)
      CHECK(false);  // codes, of which no mask is made
    else if (makes_mask)
      cast_mask<Number, Boolean>(launch, from, to);
    else
      cast_mask<Boolean, Number>(launch, from, to);
  });
}

}  // namespace

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

// Masks are booleans between the numbers that they are made of and those that they become.
void cast_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  if (numel(y.shape) == 0) return;
  if (x.dtype == DType::Bool || y.dtype == DType::Bool) return cast_mask(launch, x, y);
  pointwise(launch, "cast", PerElement<Identity>{}, {&call.inputs[0], &call.outputs[0]});
}

void cast_backward(const Call& call, Launch& launch) {
  pointwise(launch, "cast backward", PerElement<Identity>{},
            {&call.d_outputs[0], &call.d_inputs[0]});
}

}  // namespace tidemark::cuda
