// Linear layers and matrix products on the GPU: the products are cuBLASLt's; each gradient is one
// product over all rows.
#include "kernels/accumulate/accumulate.h"
#include "kernels/cuda/multiply.h"
#include "kernels/linear/linear.h"

namespace tidemark::cuda {
namespace {

// Rows that do not lie in rows are copied first: x and dy to slots of their own, a gradient's
// temporary beside them. multiply() takes the slots from 4 on, sums those below 2.
enum RowSlot : std::size_t { slot_x = 2, slot_y = 3 };

/// Writes [rows, n] to an array of any layout: in place, or by way of scratch.
class RowsToWrite {
 public:
  RowsToWrite(Launch& launch, const Array& array, std::size_t slot)
      : launch_(launch), array_(array), is_direct_(lies_in_rows(array)) {
    const Array target =
        is_direct_ ? array
                   : array_at(scratch(launch, numel(array.shape) * size_of(array.dtype), slot),
                              array.dtype, dense(array.shape));
    dense_ = target;
    rows_ = as_rows(launch, target, slot);
  }
  const Array& rows() const { return rows_; }
  void finish() {
    if (!is_direct_) convert(launch_, dense_, array_);
  }

 private:
  Launch& launch_;
  Array array_, dense_, rows_;
  bool is_direct_;
};

/// db = Σ dy over all rows.
void sum_rows(Launch& launch, const Array& dy, const Array& db) {
  Call call;
  call.pass = Pass::Accumulate;
  call.inputs = {dy};
  Array sum = db;
  sum.shape = {1, db.shape.back()};
  sum.strides = {0, db.strides[0]};
  call.outputs = {sum};
  accumulate(call, launch);
}

}  // namespace

void linear_forward(const Call& call, Launch& launch) {
  const Array x = as_rows(launch, call.inputs[0], slot_x);
  RowsToWrite y(launch, call.outputs[0], slot_y);
  const Array bias = call.inputs.size() > 2 ? call.inputs[2] : Array{};
  multiply(launch, x, transposed(call.inputs[1]), y.rows(), bias);
  y.finish();
}

void linear_backward(const Call& call, Launch& launch) {
  const auto wanted = [&](std::size_t i) { return i < call.d_inputs.size() && call.d_inputs[i]; };
  if (!call.d_outputs[0]) {
    for (const Array& gradient : call.d_inputs)
      if (gradient) set_zero(launch, gradient);
    return;
  }
  const Array dy = as_rows(launch, call.d_outputs[0], slot_y);
  if (wanted(0)) {
    RowsToWrite dx(launch, call.d_inputs[0], slot_x);
    multiply(launch, dy, call.inputs[1], dx.rows());
    dx.finish();
  }
  if (wanted(1)) {
    const Array x = as_rows(launch, call.inputs[0], slot_x);
    multiply(launch, transposed(dy), x, call.d_inputs[1]);
  }
  if (wanted(2)) sum_rows(launch, dy, call.d_inputs[2]);
}

void matmul_forward(const Call& call, Launch& launch) {
  multiply(launch, call.inputs[0], call.inputs[1], call.outputs[0]);
}

void matmul_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  for (std::size_t i = 0; i < 2; ++i) {
    const Array& gradient = call.d_inputs[i];
    if (!gradient) continue;
    if (!dy) {
      set_zero(launch, gradient);
    } else if (i == 0) {
      multiply(launch, dy, transposed(call.inputs[1]), gradient);
    } else {
      multiply(launch, transposed(call.inputs[0]), dy, gradient);
    }
  }
}

}  // namespace tidemark::cuda
