// Routing on the GPU; see routing.h.
#include "kernels/embedding/embedding.h"
#include "kernels/lookup/lookup.h"
#include "kernels/routing/routing.cuh"
#include "kernels/routing/routing.h"

namespace tidemark::cuda {
namespace {

PairStrides pairs_of(const Array& places, const Array& named) {
  return {places.strides[0], places.strides[1], named.shape[0],
          named.shape[1],    named.strides[0],  named.strides[1]};
}

}  // namespace

void even_top_k_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &places = call.outputs.back();
  const Array values = call.outputs.size() > 1 ? call.outputs[0] : Array{};
  const Array shape_of_values = values ? values : places;
  with_dtype_of(std::array{&x, values ? &values : &x}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    EvenTopKArguments<T> a;
    a.x = reader<T>(x), a.values = writer<T>(values);
    a.places = elements<std::int64_t>(places);
    a.walk = walk_in_order<2>(places.shape, {&places, &shape_of_values});
    a.k = places.shape[1], a.n = x.shape[1];
    a.row_stride = x.strides[0], a.column_stride = x.strides[1];
    start(launch, "even_top_k", even_top_k_kernel<T>, dim3(blocks_for(launch, a.walk.vectors)),
          dim3(usual_threads), 0, a);
  });
}

void even_top_k_backward(const Call& call, Launch& launch) {
  add_back(launch, call.d_inputs[0], call.outputs.back(), call.d_outputs[0], 1);
}

void one_hot_forward(const Call& call, Launch& launch) {
  const Array &places = call.inputs[0], &y = call.outputs[0];
  Array spread = places;  // [..., k, 1], which repeats along y's last axis
  std::vector<std::int64_t> dims(places.shape.dims().begin(), places.shape.dims().end());
  dims.push_back(1);
  spread.shape = Shape(dims);
  const Walk<2> walk = walk_in_order<2>(y.shape, {&y, &spread});
  start(launch, "one_hot", one_hot_kernel, dim3(blocks_for(launch, walk.vectors)),
        dim3(usual_threads), 0, wholes(places), elements<std::int64_t>(y), walk, y.shape.back());
}

void find_visits_forward(const Call& call, Launch& launch) {
  const Array &chosen = call.inputs[0], &y = call.outputs[0];
  Array of_expert = chosen;
  of_expert.shape = Shape{chosen.shape[0], chosen.shape[1]};
  FindVisitsArguments a;
  a.chosen = wholes(chosen) + call.settings.offset * chosen.strides[2];
  a.walk = walk_in_order<1>(of_expert.shape, {&of_expert});
  a.slots = chosen.shape[1];
  a.found = elements<std::int64_t>(y), a.room = y.shape[0];
  a.row_stride = y.strides[0], a.column_stride = y.strides[1];
  start(launch, "find_visits", find_visits_kernel, dim3(1), dim3(usual_threads), 0, a);
}

void index_pairs_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &places = call.inputs[1], &y = call.outputs[0];
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "index_pairs", index_pairs_kernel<T>, dim3(blocks_for(launch, y.shape[0])),
          dim3(usual_threads), 0, reader<T>(x), wholes(places), writer<T>(y), y.shape[0],
          y.strides[0], pairs_of(places, x));
  });
}

void index_pairs_backward(const Call& call, Launch& launch) {
  const Array &places = call.inputs[1], &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  fill_with(launch, dx, 0);
  if (!dy) return;
  with_dtype_of(std::array{&dy, &dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "index_pairs backward", index_pairs_backward_kernel<T>,
          dim3(blocks_for(launch, dy.shape[0])), dim3(usual_threads), 0, reader<T>(dy),
          wholes(places), writer<T>(dx), dy.shape[0], dy.strides[0], pairs_of(places, dx));
  });
}

void index_add_forward(const Call& call, Launch& launch) {
  const Array &y = call.inputs[2], &sum = call.outputs[0];
  Array places = row_numbers(call.inputs[1]);
  places.shape = Shape{places.shape[0], 1};
  with_dtype_of(std::array{&y, &sum}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    IndexAddArguments<T> a;
    a.y = reader<T>(y), a.before = reader<T>(sum), a.sum = writer<T>(sum);
    a.places = wholes(places);
    a.walk = walk_in_order<2>(y.shape, {&y, &places});
    a.rows = sum.shape[0], a.width = sum.shape[1];
    a.row_stride = sum.strides[0], a.column_stride = sum.strides[1];
    start(launch, "index_add", index_add_kernel<T>, dim3(blocks_for(launch, a.walk.vectors)),
          dim3(usual_threads), 0, a);
  });
}

void index_add_backward(const Call& call, Launch& launch) {
  const Array &dy = call.d_inputs[2], &dsum = call.d_outputs[0];
  if (!dy) return;
  if (!dsum) return fill_with(launch, dy, 0);
  Call rows;
  rows.inputs = {row_numbers(call.inputs[1]), dsum}, rows.outputs = {dy};
  embedding_forward(rows, launch);
}

}  // namespace tidemark::cuda
