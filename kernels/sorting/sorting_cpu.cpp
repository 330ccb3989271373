// Sorts, joins and puts back; see sorting.h.
#include <algorithm>
#include <numeric>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/map.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/sorting/sorting.h"

namespace tidemark::cpu {
namespace {

bool bit_at(const Array& mask, const Index& index) {
  return mask.data[offset_of(mask, index)] != std::byte{0};
}

/// The index of an element in a smaller array whose axes are aligned at the end.
Index aligned(const Index& index, const Shape& large, const Shape& small) {
  Index found{};
  for (std::size_t i = 0; i < small.rank(); ++i) found[i] = index[i + large.rank() - small.rank()];
  return found;
}

void fill_masked(const Array& to, const Array& from, const Array& mask, float value) {
  for_each_index(to.shape, [&](const Index& at) {
    const bool is_hidden = bit_at(mask, aligned(at, to.shape, mask.shape));
    set_number(to, at, is_hidden ? value : number_at(from, at));
  });
}

/// A row's elements by number: the last axis of one index, or all elements of x in order.
std::vector<Index> line_of(const Array& x, const Array& y, const Index& row) {
  std::vector<Index> line;
  if (x.shape.rank() == y.shape.rank()) {
    Index at = row;
    for (std::int64_t i = 0; i < x.shape.back(); ++i)
      at[x.shape.rank() - 1] = i, line.push_back(at);
  } else {
    for_each_index(x.shape, [&](const Index& at) { line.push_back(at); });
  }
  return line;
}

}  // namespace

void hidden_groups_forward(const Call& call, Workspace&) {
  const Array& mask = call.outputs[0];
  const std::int64_t n = mask.shape[1], k = call.settings.window;
  const std::int64_t of_group = n / call.settings.groups;
  for_each_index(mask.shape, [&](const Index& at) {
    bool is_hidden = true;
    for (std::int64_t slot = 0; slot < k; ++slot)
      is_hidden = is_hidden && (at[0] * k + slot) % n / of_group != at[1] / of_group;
    mask.data[offset_of(mask, at)] = std::byte{is_hidden};
  });
}

void masked_fill_forward(const Call& call, Workspace&) {
  fill_masked(call.outputs[0], call.inputs[0], call.inputs[1],
              static_cast<float>(call.settings.factor));
}

void masked_fill_backward(const Call& call, Workspace&) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  fill_masked(dx, dy, call.inputs[1], 0);
}

void argsort_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const bool is_whole = x.dtype == DType::Int64;
  const auto value = [&](const Index& at) {
    return is_whole ? static_cast<double>(whole_at(x, at)) : double{number_at(x, at)};
  };
  const Shape lines = y.shape.with_back(1);
  for_each_index(lines, [&](const Index& row) {
    const std::vector<Index> line = line_of(x, y, row);
    std::vector<double> values(line.size());
    std::ranges::transform(line, values.begin(), value);
    std::vector<std::size_t> order(line.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
    Index at = row;
    for (std::size_t i = 0; i < order.size(); ++i) {
      at[y.shape.rank() - 1] = static_cast<std::int64_t>(i);
      set_whole(y, at, static_cast<std::int64_t>(order[i]));
      if (call.outputs.size() < 2) continue;
      if (is_whole)
        set_whole(call.outputs[1], at, static_cast<std::int64_t>(values[order[i]]));
      else
        set_number(call.outputs[1], at, static_cast<float>(values[order[i]]));
    }
  });
}

void floor_divide_forward(const Call& call, Workspace&) {
  for_each_index(call.outputs[0].shape, [&](const Index& at) {
    set_whole(call.outputs[0], at, whole_at(call.inputs[0], at) / call.settings.window);
  });
}

void join_rows_forward(const Call& call, Workspace&) {
  std::int64_t row = call.settings.offset;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_piece(call, i)) continue;
    const std::int64_t count = call.inputs[i].shape[0];
    assign(rows_from(call.outputs[0], row, count), call.inputs[i]);
    row += count;
  }
}

void join_rows_backward(const Call& call, Workspace&) {
  const Array& dy = call.d_outputs[0];
  std::int64_t row = call.settings.offset;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_piece(call, i)) continue;
    const Array& piece = call.d_inputs[i];
    const std::int64_t count = call.inputs[i].shape[0];
    if (piece && dy) assign(piece, rows_from(dy, row, count));
    if (piece && !dy) set_all(piece, 0.0f);
    row += count;
  }
}

void put_rows_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  for (std::int64_t i = 0; i < x.shape[0]; ++i) {
    const std::int64_t row = checked_place(whole_at(call.inputs[1], {i}), y.shape[0]);
    assign(rows_from(y, row, 1), rows_from(x, i, 1));
  }
}

void put_rows_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  Call rows;
  rows.inputs = {call.inputs[1], dy}, rows.outputs = {dx};
  embedding_forward(rows, workspace);
}

void mul_kept_forward(const Call& call, Workspace& workspace) {
  Call product;
  product.inputs = {call.inputs[2], call.inputs[1]}, product.outputs = call.outputs;
  mul_forward(product, workspace);
}

void mul_kept_backward(const Call& call, Workspace& workspace) {
  Call product;
  product.inputs = {call.inputs[2], call.inputs[1]}, product.outputs = call.outputs;
  product.d_outputs = call.d_outputs, product.d_inputs = {call.d_inputs[0], call.d_inputs[1]};
  mul_backward(product, workspace);
}

}  // namespace tidemark::cpu
