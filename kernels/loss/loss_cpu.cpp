// Negative log-likelihood on the CPU; see loss.h.
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cpu/map.h"
#include "kernels/loss/loss.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t ignored = -100;

/// The targets with one more axis of one element, as a row's own statistics have it.
Array per_row(const Array& targets) {
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::ranges::copy(targets.shape.dims(), dims.begin());
  dims[targets.shape.rank()] = 1;
  Array result = targets;
  result.shape = Shape(std::span<const std::int64_t>(dims).first(targets.shape.rank() + 1));
  return result;
}

std::int64_t target_of(const Run& row, std::int64_t classes, std::int64_t i) {
  const std::int64_t target = *reinterpret_cast<const std::int64_t*>(row.data);
  if (target != ignored && (target < 0 || target >= classes))
    throw InputError(
        fmt::format("target {} of row {} is no class: {} to {}, or {} to ignore the row", target, i,
                    0, classes - 1, ignored));
  return target;
}

}  // namespace

void nll_loss_forward(const Call& call, Workspace&) {
  const Array &log_p = call.inputs[0], &weight = entry(call.outputs, 1);
  const Array targets = per_row(call.inputs[1]);
  const std::int64_t classes = row_length(log_p.shape);
  double total = 0;
  std::int64_t count = 0;
  for_rows(std::array{&log_p, &targets}, [&](const auto& rows, std::int64_t i) {
    const std::int64_t target = target_of(rows[1], classes, i);
    if (target == ignored) return;
    total -= static_cast<double>(value_at(rows[0].from(target).data, log_p.dtype));
    ++count;
  });
  const Array& loss = call.outputs[0];
  const double mean = count == 0 ? NAN : total / static_cast<double>(count);
  set_value(loss.data, loss.dtype, static_cast<float>(mean));
  if (weight) set_value(weight.data, weight.dtype, static_cast<float>(count));
}

void nll_loss_backward(const Call& call, Workspace&) {
  const Array &d_log_p = call.d_inputs[0], &d_loss = call.d_outputs[0];
  if (!d_log_p) return;
  set_all(d_log_p, 0.0f);
  if (!d_loss) return;
  const Array targets = per_row(call.inputs[1]);
  const Array& weight = entry(call.outputs, 1);
  const std::int64_t classes = row_length(d_log_p.shape);
  const std::array arrays = {&d_log_p, &targets};
  float count = 0;
  if (weight)
    count = value_at(weight.data, weight.dtype);
  else
    for_rows(arrays, [&](const auto& rows, std::int64_t i) {
      if (target_of(rows[1], classes, i) != ignored) ++count;
    });
  const float gradient = -value_at(d_loss.data, d_loss.dtype) / count;
  for_rows(arrays, [&](const auto& rows, std::int64_t i) {
    const std::int64_t target = target_of(rows[1], classes, i);
    if (target != ignored) set_value(rows[0].from(target).data, d_log_p.dtype, gradient);
  });
}

}  // namespace tidemark::cpu
