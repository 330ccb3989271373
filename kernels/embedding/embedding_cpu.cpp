// Copies rows by id; sums fp32 gradients in place, others row by row along chains of ids.
#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "kernels/cpu/sums.h"
#include "kernels/embedding/embedding.h"

namespace tidemark::cpu {
namespace {

std::int64_t checked(const std::byte* at, std::int64_t rows) {
  std::int64_t id = 0;
  std::memcpy(&id, at, sizeof id);
  if (id >= 0 && id < rows) return id;
  throw InputError(
      fmt::format("embedding: index {} is outside of its table; need 0 to {}", id, rows - 1));
}

Run table_row(const Array& table, std::int64_t row) {
  return {table.data + row * table.strides[0] * size_of(table.dtype), table.dtype,
          table.strides[1]};
}

/// The ids [...] as rows [..., 1] of one id each, so that they are walked over like y.
Array as_rows(const Array& ids) {
  std::vector<std::int64_t> dims(ids.shape.dims().begin(), ids.shape.dims().end());
  dims.push_back(1);
  return {ids.data, ids.dtype, Shape(dims), ids.strides};
}

/// Calls body(id, row of `rows` [..., width]) in the order of the ids.
template <typename Body>
void for_ids(const Array& ids, const Array& rows, std::int64_t table_rows, Body&& body) {
  const Array id_rows = as_rows(ids);
  for_rows(std::array{&rows, &id_rows}, [&](const auto& runs, std::int64_t) {
    body(checked(runs[1].data, table_rows), runs[0]);
  });
}

/// Chains of ids that name the same row, kept in the scratch memory of floats: for each row its
/// first id, for each id the next one; −1 ends a chain.
class Chains {
 public:
  Chains(std::int64_t rows, std::int64_t ids, Workspace& workspace)
      : memory_(workspace.floats(2 * static_cast<std::size_t>(rows + ids), 1)), rows_(rows) {
    for (std::int64_t row = 0; row < rows; ++row) set(row, -1);
  }
  std::int64_t first(std::int64_t row) const { return at(row); }
  std::int64_t next(std::int64_t id) const { return at(rows_ + id); }
  void put_first(std::int64_t row, std::int64_t id) {
    set(rows_ + id, first(row));
    set(row, id);
  }

 private:
  std::int64_t at(std::int64_t i) const {
    std::int64_t value;
    std::memcpy(&value, memory_.data() + 2 * i, sizeof value);
    return value;
  }
  void set(std::int64_t i, std::int64_t value) {
    std::memcpy(memory_.data() + 2 * i, &value, sizeof value);
  }

  std::span<float> memory_;
  std::int64_t rows_;
};

// fp32 rows are summed where they lie.
void add_in_place(const Call& call, const Array& dtable, Workspace& workspace) {
  const std::int64_t rows = dtable.shape[0], width = dtable.shape[1];
  float* const scratch = workspace.floats(static_cast<std::size_t>(width), 0).data();
  set_zero(dtable);
  for_ids(call.inputs[0], call.d_outputs[0], rows, [&](std::int64_t id, const Run& run) {
    const Run row = table_row(dtable, id);
    add_to(reinterpret_cast<float*>(row.data), read(run, width, scratch), width);
  });
}

// Others are summed one by one in fp32: their ids in ascending order, found by going backwards.
void add_by_row(const Call& call, const Array& dtable, Workspace& workspace) {
  const std::int64_t rows = dtable.shape[0], width = dtable.shape[1];
  const Array& dy = call.d_outputs[0];
  const Array ids = as_rows(call.inputs[0]);
  const std::int64_t count = numel(ids.shape);
  Chains chains(rows, count, workspace);
  for (std::int64_t i = count; i-- > 0;) chains.put_first(checked(nth_row(ids, i).data, rows), i);
  const auto size = static_cast<std::size_t>(width);
  float* const sums = workspace.floats(2 * size, 0).data();
  for (std::int64_t row = 0; row < rows; ++row) {
    std::fill_n(sums, width, 0.0f);
    for (std::int64_t i = chains.first(row); i >= 0; i = chains.next(i))
      add_to(sums, read(nth_row(dy, i), width, sums + width), width);
    scatter(sums, width, table_row(dtable, row));
  }
}

}  // namespace

void embedding_forward(const Call& call, Workspace& workspace) {
  const Array &table = call.inputs[1], &y = call.outputs[0];
  const std::int64_t width = table.shape[1];
  const bool is_copy =
      table.dtype == y.dtype && table.strides[1] == 1 && y.strides[y.shape.rank() - 1] == 1;
  float* const scratch = workspace.floats(static_cast<std::size_t>(width), 0).data();
  for_ids(call.inputs[0], y, table.shape[0], [&](std::int64_t id, const Run& to) {
    const Run from = table_row(table, id);
    if (is_copy)
      std::memcpy(to.data, from.data, static_cast<std::size_t>(width * size_of(y.dtype)));
    else
      scatter(read(from, width, scratch), width, to);
  });
}

void embedding_backward(const Call& call, Workspace& workspace) {
  const Array& dtable = call.d_inputs[1];
  if (!dtable) return;
  if (!call.d_outputs[0]) return set_zero(dtable);
  if (dtable.dtype == DType::Float32 && dtable.strides[1] == 1)
    add_in_place(call, dtable, workspace);
  else
    add_by_row(call, dtable, workspace);
}

}  // namespace tidemark::cpu
