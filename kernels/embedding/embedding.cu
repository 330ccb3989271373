// Gathers rows in vectors; the gradient follows chains of the ids that name a row.
#include "kernels/embedding/embedding.cuh"
#include "kernels/embedding/embedding.h"

namespace tidemark::cuda {
namespace {

/// The ids as [..., 1], which spread over y.
Array as_rows(const Array& ids) {
  std::vector<std::int64_t> dims(ids.shape.dims().begin(), ids.shape.dims().end());
  dims.push_back(1);
  return {ids.data, ids.dtype, Shape(dims), ids.strides};
}

/// In row-major order of the array, whose last axis is left out.
Walk<1> rows_in_order(const Array& array) {
  Axes<1> axes;
  for (std::size_t i = 0; i + 1 < array.shape.rank(); ++i)
    if (array.shape[i] != 1) axes.add(array.shape[i], {array.strides[i]});
  return Walk<1>(axes, 1);
}

}  // namespace

void embedding_forward(const Call& call, Launch& launch) {
  const Array &ids = call.inputs[0], &table = call.inputs[1], &y = call.outputs[0];
  CHECK(ids.dtype == DType::Int64);
  if (numel(y.shape) == 0) return;
  const Array id_rows = as_rows(ids);
  const Array columns{nullptr, DType::Float32, Shape{y.shape.back()}, {1}};
  const Axes<3> axes = merged(axes_over<3>(y.shape, {&y, &id_rows, &columns}), 0);
  with_dtype_of(std::array{&table, &y}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    EmbeddingArguments<T> a;
    a.ids = elements<const std::int64_t>(ids);
    a.table = reader<T>(table), a.y = writer<T>(y);
    a.rows = table.shape[0];
    a.row_stride = table.strides[0], a.column_stride = table.strides[1];
    // The table is read at any of its rows: each must begin at a multiple of a vector.
    Axes<1> of_table;
    of_table.add(table.shape[0], {table.strides[0]});
    of_table.add(table.shape[1], {table.strides[1]});
    const bool vectors = axes.rank > 0 && axes.extent[axes.rank - 1] == y.shape.back() &&
                         axes.stride[axes.rank - 1][2] == 1 &&
                         is_vectorizable<3>(axes, {&y, &columns, &columns}, V) &&
                         is_vectorizable<1>(of_table, {&table}, V);
    a.walk = Walk<3>(axes, vectors ? V : 1);
    const auto kernel = vectors ? embedding_forward_kernel<T, V> : embedding_forward_kernel<T, 1>;
    start(launch, "embedding", kernel, dim3(blocks_for(launch, a.walk.vectors)),
          dim3(usual_threads), 0, a);
  });
}

void embedding_backward(const Call& call, Launch& launch) {
  const Array& dtable = call.d_inputs[1];
  const Array &ids = call.inputs[0], &dy = call.d_outputs[0];
  if (!dtable || numel(dtable.shape) == 0) return;
  if (!dy) return fill_with(launch, dtable, 0);
  const std::int64_t rows = dtable.shape[0], count = numel(ids.shape);
  const Walk<1> id_walk = rows_in_order(as_rows(ids));
  Chains chains;
  chains.first = reinterpret_cast<long long*>(scratch(launch, rows * 8, 0));
  chains.next = reinterpret_cast<long long*>(scratch(launch, count * 8, 1));
  chains.count = reinterpret_cast<unsigned*>(scratch(launch, rows * 4, 2));
  start(launch, "embedding chains", begin_chains_kernel, dim3(blocks_for(launch, rows)),
        dim3(usual_threads), 0, chains, rows);
  start(launch, "embedding chains", chain_ids_kernel, dim3(blocks_for(launch, count)),
        dim3(usual_threads), 0, elements<const std::int64_t>(ids), id_walk, rows, chains);
  with_dtype_of(std::array{&dy, &dtable}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    EmbeddingGradientArguments<T> a;
    a.ids = elements<const std::int64_t>(ids), a.id_walk = id_walk;
    a.dy = reader<T>(dy), a.dy_rows = rows_in_order(dy);
    a.dy_step = dy.strides[dy.shape.rank() - 1];
    a.dtable = writer<T>(dtable);
    a.rows = rows, a.width = dtable.shape[1];
    a.row_stride = dtable.strides[0], a.column_stride = dtable.strides[1];
    a.chains = chains;
    const bool vectors = is_vectorizable<1>(axes_over<1>(dy.shape, {&dy}), {&dy}, V) &&
                         is_vectorizable<1>(axes_over<1>(dtable.shape, {&dtable}), {&dtable}, V);
    const auto run = [&](auto kernel, unsigned thread_rows, std::int64_t parts) {
      start(launch, "embedding backward", kernel,
            dim3(blocks_for(launch, rows, 1), static_cast<unsigned>(parts)),
            dim3(gradient_lanes, thread_rows), 0, a);
    };
    // Few rows, such as BERT's two kinds of tokens, have many ids each: as many threads as can be.
    constexpr unsigned most_rows = 32, usual_rows = 8;
    if (rows <= launch.processors) {
      const std::int64_t v = vectors ? V : 1;
      const std::int64_t parts = (a.width + gradient_lanes * v - 1) / (gradient_lanes * v);
      run(vectors ? embedding_backward_kernel<T, V, most_rows>
                  : embedding_backward_kernel<T, 1, most_rows>,
          most_rows, std::min<std::int64_t>(parts, 65535));
    } else {
      run(vectors ? embedding_backward_kernel<T, V, usual_rows>
                  : embedding_backward_kernel<T, 1, usual_rows>,
          usual_rows, 1);
    }
  });
}

}  // namespace tidemark::cuda
