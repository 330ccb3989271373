// Looks elements up, and adds their gradients line by line; see lookup.h.
#include "kernels/cpu/elements.h"
#include "kernels/cpu/sums.h"
#include "kernels/embedding/embedding.h"
#include "kernels/lookup/lookup.h"
#include "kernels/routing/routing.h"

namespace tidemark::cpu {
void index_rows_forward(const Call& call, Workspace& workspace) {
  Call rows = call;
  rows.inputs = {row_numbers(call.inputs[1]), call.inputs[0]};
  embedding_forward(rows, workspace);
}

void index_rows_backward(const Call& call, Workspace& workspace) {
  Call rows = call;
  rows.inputs = {row_numbers(call.inputs[1]), call.inputs[0]};
  rows.d_inputs = {Array{}, call.d_inputs[0]};
  embedding_backward(rows, workspace);
}

void gather_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &places = call.inputs[1], &y = call.outputs[0];
  const auto axis = static_cast<std::size_t>(call.settings.axis);
  for_each_index(places.shape, [&](const Index& at) {
    Index from = at;
    from[axis] = checked_place(whole_at(places, at), x.shape[axis]);
    set_number(y, at, number_at(x, from));
  });
}

void gather_backward(const Call& call, Workspace& workspace) {
  add_back(call.d_inputs[0], call.inputs[1], call.d_outputs[0],
           static_cast<std::size_t>(call.settings.axis), workspace);
}

void add_back(const Array& dx, const Array& places, const Array& dy, std::size_t axis,
              Workspace& workspace) {
  if (!dx) return;
  if (!dy) return set_zero(dx);
  const std::int64_t n = dx.shape[axis], taken = places.shape[axis];
  float* const sums = workspace.floats(static_cast<std::size_t>(n)).data();
  const Run line{nullptr, dx.dtype, dx.strides[axis]};
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::ranges::copy(dx.shape.dims(), dims.begin());
  dims[axis] = 1;
  const Shape lines(std::span<const std::int64_t>(dims).first(dx.shape.rank()));
  for_each_index(lines, [&](Index at) {
    std::fill_n(sums, n, 0.0f);
    Index first = at;
    for (at[axis] = 0; at[axis] < taken; ++at[axis])
      sums[checked_place(whole_at(places, at), n)] += number_at(dy, at);
    Run to = line;
    to.data = dx.data + offset_of(dx, first);
    scatter(sums, n, to);
  });
}

}  // namespace tidemark::cpu
