// Deals out picks, finds visits and adds what experts made of them; see routing.h.
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/sums.h"
#include "kernels/embedding/embedding.h"
#include "kernels/lookup/lookup.h"
#include "kernels/routing/routing.h"

namespace tidemark::cpu {
namespace {

/// The last of one or two outputs.
const Array& places_of(const Call& call) { return call.outputs.back(); }

}  // namespace

void even_top_k_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &places = places_of(call);
  const std::int64_t k = places.shape[1], n = x.shape[1];
  for_each_index(places.shape, [&](const Index& at) {
    const std::int64_t place = (at[0] * k + at[1]) % n;
    set_whole(places, at, place);
    if (call.outputs.size() > 1) set_number(call.outputs[0], at, number_at(x, {at[0], place}));
  });
}

void even_top_k_backward(const Call& call, Workspace& workspace) {
  add_back(call.d_inputs[0], places_of(call), call.d_outputs[0], 1, workspace);
}

void one_hot_forward(const Call& call, Workspace&) {
  const Array &places = call.inputs[0], &y = call.outputs[0];
  const std::size_t last = places.shape.rank();
  for_each_index(y.shape, [&](const Index& at) {
    set_whole(y, at, whole_at(places, at) == at[last] ? 1 : 0);
  });
}

void find_visits_forward(const Call& call, Workspace&) {
  const Array &chosen = call.inputs[0], &y = call.outputs[0];
  const std::int64_t room = y.shape[0];
  std::int64_t found = 0;
  for_each_index({chosen.shape[0], chosen.shape[1]}, [&](const Index& visit) {
    if (whole_at(chosen, {visit[0], visit[1], call.settings.offset}) != 1) return;
    if (found < room) {
      set_whole(y, {found, 0}, visit[0]);
      set_whole(y, {found, 1}, visit[1]);
    }
    ++found;
  });
  if (found != room)
    throw InputError(fmt::format("routing: expert {} has {} visits; the plan has room for {}",
                                 call.settings.offset, found, room));
}

void index_pairs_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &places = call.inputs[1], &y = call.outputs[0];
  for (std::int64_t i = 0; i < y.shape[0]; ++i)
    set_number(y, {i},
               number_at(x, {checked_place(whole_at(places, {i, 0}), x.shape[0]),
                             checked_place(whole_at(places, {i, 1}), x.shape[1])}));
}

void index_pairs_backward(const Call& call, Workspace&) {
  const Array &places = call.inputs[1], &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  set_zero(dx);
  if (!dy) return;
  for (std::int64_t i = 0; i < dy.shape[0]; ++i)
    set_number(dx,
               {checked_place(whole_at(places, {i, 0}), dx.shape[0]),
                checked_place(whole_at(places, {i, 1}), dx.shape[1])},
               number_at(dy, {i}));
}

void index_add_forward(const Call& call, Workspace& workspace) {
  const Array &y = call.inputs[2], &sum = call.outputs[0];
  const std::int64_t width = sum.shape[1];
  const auto size = static_cast<std::size_t>(width);
  float* const scratch = workspace.floats(2 * size).data();
  for (std::int64_t i = 0; i < y.shape[0]; ++i) {
    const Run row = nth_row(sum, checked_place(whole_at(call.inputs[1], {i}), sum.shape[0]));
    gather(row, width, scratch);
    add_to(scratch, read(nth_row(y, i), width, scratch + size), width);
    scatter(scratch, width, row);
  }
}

void index_add_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_inputs[2], &dsum = call.d_outputs[0];
  if (!dy) return;
  if (!dsum) return set_zero(dy);
  Call rows;
  rows.inputs = {row_numbers(call.inputs[1]), dsum}, rows.outputs = {dy};
  embedding_forward(rows, workspace);
}

}  // namespace tidemark::cpu
