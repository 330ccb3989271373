// Sums by reduction, the rest by pointwise kernels; see arithmetic.h.
#include "kernels/arithmetic/arithmetic.cuh"
#include "kernels/arithmetic/arithmetic.h"

namespace tidemark::cuda {
namespace {

/// What is not wanted is left alone.
void clear(Launch& launch, const Array& array) {
  if (array) fill_with(launch, array, 0);
}

Array second(const std::vector<Array>& list) { return list.size() > 1 ? list[1] : Array{}; }

}  // namespace

void zeros_forward(const Call& call, Launch& launch) { fill_with(launch, call.outputs[0], 0); }

void sum_forward(const Call& call, Launch& launch) {
  const Array& x = call.inputs[0];
  summed_to(launch, "sum", Identity{}, x.shape, {&x},
            with_axis(call.outputs[0], x.shape.rank(), call.settings.axis));
}

void sum_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  const Array spread = with_axis(dy, dx.shape.rank(), call.settings.axis);
  pointwise(launch, "sum backward", PerElement<Identity>{}, {&spread, &dx});
}

void divide_forward(const Call& call, Launch& launch) {
  pointwise(launch, "divide", PerElement<DivideFunction>{},
            {&call.inputs[0], &call.inputs[1], &call.outputs[0]});
}

void divide_backward(const Call& call, Launch& launch) {
  const Array &a = call.inputs[0], &b = call.inputs[1], &dy = call.d_outputs[0];
  const Array &da = call.d_inputs[0], db = second(call.d_inputs);
  if (!dy) return clear(launch, da), clear(launch, db);
  if (da) pointwise(launch, "divide backward", PerElement<DivideFunction>{}, {&dy, &b, &da});
  if (db) summed_to(launch, "divide backward", DivisorFunction{}, dy.shape, {&dy, &a, &b}, db);
}

void subtract_forward(const Call& call, Launch& launch) {
  const Array &a = call.inputs[0], &y = call.outputs[0];
  if (call.inputs.size() == 1)
    return pointwise(launch, "subtract", PerElement<LessOneFunction>{}, {&a, &y});
  pointwise(launch, "subtract", PerElement<DifferenceFunction>{}, {&a, &call.inputs[1], &y});
}

void subtract_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_outputs[0], &da = call.d_inputs[0], db = second(call.d_inputs);
  if (!dy) return clear(launch, da), clear(launch, db);
  if (da) pointwise(launch, "subtract backward", PerElement<Identity>{}, {&dy, &da});
  if (db) summed_to(launch, "subtract backward", NegativeFunction{}, dy.shape, {&dy}, db);
}

}  // namespace tidemark::cuda
