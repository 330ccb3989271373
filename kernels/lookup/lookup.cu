// Rows by the kernels of embeddings, elements by their own; see lookup.h.
#include "kernels/embedding/embedding.h"
#include "kernels/lookup/lookup.cuh"
#include "kernels/lookup/lookup.h"
#include "kernels/routing/routing.h"

namespace tidemark::cuda {
namespace {

/// Without its extent along the axis: every element of a line begins there.
Array lines_of(const Array& array, std::size_t axis) {
  Array lines = array;
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::copy(array.shape.dims().begin(), array.shape.dims().end(), dims.begin());
  dims[axis] = 1;
  lines.shape = Shape(std::span<const std::int64_t>(dims).first(array.shape.rank()));
  return lines;
}

}  // namespace

void index_rows_forward(const Call& call, Launch& launch) {
  Call rows = call;
  rows.inputs = {row_numbers(call.inputs[1]), call.inputs[0]};
  embedding_forward(rows, launch);
}

void index_rows_backward(const Call& call, Launch& launch) {
  Call rows = call;
  rows.inputs = {row_numbers(call.inputs[1]), call.inputs[0]};
  rows.d_inputs = {Array{}, call.d_inputs[0]};
  embedding_backward(rows, launch);
}

void gather_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &places = call.inputs[1], &y = call.outputs[0];
  const auto axis = static_cast<std::size_t>(call.settings.axis);
  const Array lines = lines_of(x, axis);
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    GatherArguments<T> a;
    a.x = reader<T>(x), a.y = writer<T>(y), a.places = wholes(places);
    a.walk = walk_in_order<3>(y.shape, {&y, &places, &lines});
    a.n = x.shape[axis], a.stride = x.strides[axis];
    start(launch, "gather", gather_kernel<T>, dim3(blocks_for(launch, a.walk.vectors)),
          dim3(usual_threads), 0, a);
  });
}

void gather_backward(const Call& call, Launch& launch) {
  add_back(launch, call.d_inputs[0], call.inputs[1], call.d_outputs[0],
           static_cast<std::size_t>(call.settings.axis));
}

void add_back(Launch& launch, const Array& dx, const Array& places, const Array& dy,
              std::size_t axis) {
  if (!dx) return;
  if (!dy) return fill_with(launch, dx, 0);
  const Array place_lines = lines_of(places, axis), dy_lines = lines_of(dy, axis);
  Array number{nullptr, DType::Float32, dx.shape, {}};  // its offset is the place itself
  number.strides[axis] = 1;
  with_dtype_of(std::array{&dy, &dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AddBackArguments<T> a;
    a.dy = reader<T>(dy), a.dx = writer<T>(dx), a.places = wholes(places);
    a.walk = walk_in_order<4>(dx.shape, {&dx, &place_lines, &dy_lines, &number});
    a.taken = places.shape[axis];
    a.place_stride = places.strides[axis], a.dy_stride = dy.strides[axis];
    start(launch, "gather backward", add_back_kernel<T>, dim3(blocks_for(launch, a.walk.vectors)),
          dim3(usual_threads), 0, a);
  });
}

}  // namespace tidemark::cuda
