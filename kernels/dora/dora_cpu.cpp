// The framework's tensors one after the other; see dora.h.
#include <cmath>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/map.h"
#include "kernels/dora/dora.h"
#include "kernels/linear/linear.h"

namespace tidemark::cpu {

void dora_norm_forward(const Call& call, Workspace& workspace) {
  const Array &weight = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2];
  const Array &norm = call.outputs[0], &eye = call.outputs[1], &low = call.outputs[2];
  const Array& delta = call.outputs[3];
  set_all(eye, 0.0f);
  for (std::int64_t i = 0; i < eye.shape[0]; ++i) set_number(eye, {i, i}, 1);
  for_each_index(low.shape, [&](const Index& at) {
    set_number(low, at, number_at(a, {at[1], at[0]}));
  });
  Call product;
  product.kind = OpKind::MatMul, product.inputs = {b, a}, product.outputs = {delta};
  matmul_forward(product, workspace);
  for (std::int64_t row = 0; row < norm.shape[0]; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < weight.shape[1]; ++i) {
      const double x = double{number_at(weight, {row, i})} + double{number_at(delta, {row, i})};
      sum += x * x;
    }
    set_number(norm, {row}, static_cast<float>(std::sqrt(sum)));
  }
}

}  // namespace tidemark::cpu
