// Launches of sorting.cuh; see sorting.h.
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/sorting/sorting.cuh"
#include "kernels/sorting/sorting.h"

namespace tidemark::cuda {
namespace {

void fill_masked(Launch& launch, const Array& to, const Array& from, const Array& mask,
                 float value) {
  const Walk<3> walk = walk_in_order<3>(to.shape, {&to, &from, &mask});
  with_dtype_of(std::array{&from, &to}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "masked_fill", masked_fill_kernel<T>, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, reader<T>(from), elements<const std::uint8_t>(mask),
          writer<T>(to), walk, value);
  });
}

/// One row: the last axis, or all of an array that is sorted as a whole.
Array one_row(const Array& x, bool is_whole) {
  if (!x || is_whole) return x;
  Array row = x;
  const std::size_t last = x.shape.rank() - 1;
  row.shape = Shape{x.shape.back()}, row.strides = {x.strides[last]};
  return row;
}

void copy_rows(Launch& launch, const Array& from, const Array& to) {
  pointwise(launch, "join_rows", PerElement<Identity>{}, {&from, &to});
}

}  // namespace

void hidden_groups_forward(const Call& call, Launch& launch) {
  const Array& mask = call.outputs[0];
  const Walk<1> walk = walk_in_order<1>(mask.shape, {&mask});
  const std::int64_t n = mask.shape[1];
  start(launch, "hidden_groups", hidden_groups_kernel, dim3(blocks_for(launch, walk.vectors)),
        dim3(usual_threads), 0, elements<std::uint8_t>(mask), walk, n, n / call.settings.groups,
        call.settings.window);
}

void masked_fill_forward(const Call& call, Launch& launch) {
  fill_masked(launch, call.outputs[0], call.inputs[0], call.inputs[1],
              static_cast<float>(call.settings.factor));
}

void masked_fill_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  fill_masked(launch, call.d_inputs[0], call.d_outputs[0], call.inputs[1], 0);
}

void argsort_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const Array values = call.outputs.size() > 1 ? call.outputs[1] : Array{};
  const bool is_whole = y.shape.rank() == 1;
  const Array from = one_row(x, is_whole), to = one_row(y, is_whole);
  const Array kept = values ? one_row(values, is_whole) : to;
  CHECK(!is_whole || is_dense(x.layout()));
  Array line = from;
  if (is_whole) line.shape = Shape{numel(x.shape)}, line.strides = {1};
  const Walk<3> walk = walk_in_order<3>(line.shape, {&line, &to, &kept});
  const auto apart = [&](const Array& array) {
    return is_whole || array.shape.rank() < 2 ? 0 : array.strides[array.shape.rank() - 2];
  };
  CHECK(is_whole || x.shape.rank() == 2);
  const SortRows of{numel(y.shape) / y.shape.back(), y.shape.back(), apart(x), apart(y),
                    values ? apart(values) : apart(y)};
  const dim3 blocks(blocks_for(launch, numel(y.shape))), threads(usual_threads);
  auto* const places = elements<std::int64_t>(y);
  if (x.dtype == DType::Int64)
    start(launch, "argsort", argsort_kernel<const std::int64_t*, std::int64_t*>, blocks, threads, 0,
          wholes(x), places, elements<std::int64_t>(values), walk, of);
  else
    start(launch, "argsort", argsort_kernel<Reader<AnyFloat>, Writer<AnyFloat>>, blocks, threads, 0,
          reader<AnyFloat>(x), places, writer<AnyFloat>(values), walk, of);
}

void floor_divide_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const Walk<2> walk = walk_in_order<2>(y.shape, {&y, &x});
  start(launch, "floor_divide", floor_divide_kernel, dim3(blocks_for(launch, walk.vectors)),
        dim3(usual_threads), 0, wholes(x), elements<std::int64_t>(y), walk, call.settings.window);
}

void join_rows_forward(const Call& call, Launch& launch) {
  std::int64_t row = call.settings.offset;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_piece(call, i)) continue;
    const std::int64_t count = call.inputs[i].shape[0];
    copy_rows(launch, call.inputs[i], rows_from(call.outputs[0], row, count));
    row += count;
  }
}

void join_rows_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  std::int64_t row = call.settings.offset;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_piece(call, i)) continue;
    const std::int64_t count = call.inputs[i].shape[0];
    if (call.d_inputs[i] && dy) copy_rows(launch, rows_from(dy, row, count), call.d_inputs[i]);
    if (call.d_inputs[i] && !dy) fill_with(launch, call.d_inputs[i], 0);
    row += count;
  }
}

void put_rows_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  Array places = call.inputs[1];
  places.shape = Shape{places.shape[0], 1};
  const Walk<2> walk = walk_in_order<2>(x.shape, {&x, &places});
  const PutGeometry of{y.shape[0], y.shape[1], y.strides[0], y.strides[1]};
  with_dtype_of(std::array{&x, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "put_rows", put_rows_kernel<T>, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, reader<T>(x), wholes(places), writer<T>(y), walk, of);
  });
}

void put_rows_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  Call rows;
  rows.inputs = {call.inputs[1], call.d_outputs[0]}, rows.outputs = {call.d_inputs[0]};
  embedding_forward(rows, launch);
}

void mul_kept_forward(const Call& call, Launch& launch) {
  Call product;
  product.inputs = {call.inputs[2], call.inputs[1]}, product.outputs = call.outputs;
  mul_forward(product, launch);
}

void mul_kept_backward(const Call& call, Launch& launch) {
  Call product;
  product.inputs = {call.inputs[2], call.inputs[1]}, product.outputs = call.outputs;
  product.d_outputs = call.d_outputs, product.d_inputs = {call.d_inputs[0], call.d_inputs[1]};
  mul_backward(product, launch);
}

}  // namespace tidemark::cuda
