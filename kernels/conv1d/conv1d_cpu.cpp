// As conv2d, with planes of one row; see conv1d.h.
#include "kernels/conv/conv.h"
#include "kernels/conv1d/conv1d.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

// conv2d leaves this piece alone, unless every channel is a group of its own.
constexpr std::size_t slot_padded = 3;

/// [n, c, length] → [n, c, 1, length].
Array as_plane(const Array& x) {
  if (x.shape.rank() != 3) return x;
  return {x.data,
          x.dtype,
          Shape{x.shape[0], x.shape[1], 1, x.shape[2]},
          {x.strides[0], x.strides[1], 0, x.strides[2]}};
}

Array padded_plane(const Array& x, std::int64_t padding, Workspace& workspace) {
  const Shape shape{x.shape[0], x.shape[1], 1, x.shape[2] + 2 * padding};
  const std::span<float> memory =
      workspace.floats(static_cast<std::size_t>(numel(shape)), slot_padded);
  std::ranges::fill(memory, 0.0f);
  return array_at(reinterpret_cast<std::byte*>(memory.data()), DType::Float32, dense(shape));
}

/// What lies between the zeros.
Array inside(const Array& padded, const Array& x, std::int64_t padding) {
  Array part = padded;
  part.data += padding * size_of(padded.dtype);
  part.shape = Shape{x.shape[0], x.shape[1], 1, x.shape[2]};
  return part;
}

Call of_planes(const Call& call, const Array& x) {
  Call planes = call;
  planes.kind = OpKind::Conv2d, planes.settings.padding = 0;
  for (std::vector<Array>* const list :
       {&planes.inputs, &planes.outputs, &planes.d_outputs, &planes.d_inputs})
    for (Array& array : *list) array = as_plane(array);
  planes.inputs[0] = x;
  return planes;
}

}  // namespace

void conv1d_forward(const Call& call, Workspace& workspace) {
  const Array& x = call.inputs[0];
  const std::int64_t padding = call.settings.padding;
  const Array padded = padded_plane(x, padding, workspace);
  assign(inside(padded, x, padding), as_plane(x));
  conv2d_forward(of_planes(call, padded), workspace);
}

// The gradient of x first, then in the same memory x itself for that of the weight.
void conv1d_backward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &dx = call.d_inputs[0];
  const std::int64_t padding = call.settings.padding;
  if (dx) {
    const Array padded = padded_plane(x, padding, workspace);
    Call planes = of_planes(call, padded);
    for (Array& gradient : planes.d_inputs) gradient.data = nullptr;
    planes.d_inputs[0] = padded;
    conv2d_backward(planes, workspace);
    assign(as_plane(dx), inside(padded, x, padding));
  }
  const Array padded = padded_plane(x, padding, workspace);
  if (x) assign(inside(padded, x, padding), as_plane(x));
  Call planes = of_planes(call, padded);
  planes.d_inputs[0].data = nullptr;
  conv2d_backward(planes, workspace);
}

}  // namespace tidemark::cpu
