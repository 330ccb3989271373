// Words for what an op's row in the table, its operands' shapes and its attributes say.
#include "simulator/cost/curve_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "simulator/cost/row_alignment.h"
#include "traces/op_kind.h"

namespace tidemark {
namespace {

bool is_of_op(Task task) {
  return task == Task::Forward || task == Task::Backward || task == Task::WeightGradient ||
         task == Task::Recompute;
}

std::string_view name_of(Task task) {
  if (task == Task::Recompute) return to_string(Task::Forward);
  if (task == Task::WeightGradient) return to_string(Task::Backward);
  return to_string(task);
}

std::int64_t next_power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

bool sums_up_rows(OpKind kind) {
  constexpr std::array kinds = {OpKind::LayerNorm, OpKind::RmsNorm, OpKind::MsLayerNorm,
                                OpKind::MsRmsNorm, OpKind::Softmax, OpKind::LogSoftmax};
  return std::ranges::find(kinds, kind) != kinds.end();
}

std::string words_of_operands(const Trace& trace, const Op& op) {
  const OpRow& row = row_of(op.kind);
  const auto inputs = trace.inputs(op);
  const Shape& first = trace[inputs[0]].shape;
  const Shape& made = trace[trace.outputs(op)[0]].shape;
  std::string words;
  if (row.work == Work::Linear || row.work == Work::Convolution || row.work == Work::Attention)
    words += fmt::format(", {} operands", inputs.size());
  if (attribute(trace, op, AttributeKey::Causal) != 0) words += ", causal";
  if (row.work == Work::Attention)
    words += fmt::format(", {} tokens", next_power_of_two(first.back(1)));
  if (sums_up_rows(op.kind)) words += fmt::format(", rows of {}", next_power_of_two(first.back()));
  const auto is_spread = [&](TensorId t) { return trace[t].shape != made; };
  if ((op.kind == OpKind::Add || op.kind == OpKind::Mul) && std::ranges::any_of(inputs, is_spread))
    words += ", spread";
  if (const int alignment = row_alignment(trace, op); alignment < aligned_rows)
    words += alignment > 1 ? ", even" : ", odd";
  if (row.work == Work::Elementwise && made.rank() > 0 && made.back() % aligned_rows != 0)
    words += ", odd";
  return words;
}

std::string words_of_codes(const Schedule& schedule, const Run& run) {
  const auto is_of = [&](Role role) {
    return [&, role](BufferId b) { return schedule[b].role == role; };
  };
  const auto reads = schedule.reads(run), writes = schedule.writes(run);
  std::string words;
  if (std::ranges::any_of(writes, is_of(Role::Ranges))) words += ", watched";
  if (std::ranges::any_of(writes, is_of(Role::Codes))) words += ", makes codes";
  if (std::ranges::any_of(reads, is_of(Role::Codes))) words += ", from codes";
  return words;
}

bool is_delayed(const Schedule& schedule, const Run& run) {
  return std::ranges::any_of(schedule.writes(run), [&](BufferId b) {
    const Buffer& buffer = schedule[b];
    return buffer.role == Role::Codes && schedule.encodings[buffer.encoding].delayed;
  });
}

}  // namespace

CurveKeys curve_keys(const Trace& trace, const Schedule& schedule, const Run& run) {
  std::string kind(name_of(run.task)), words;
  TensorId tensor = no_tensor;
  if (is_of_op(run.task)) {
    const Op& op = trace[run.op];
    kind.append(" ").append(operation_name(trace, op));
    // A kernel of its own: it moves memory where the others multiply matrices.
    if (attribute(trace, op, AttributeKey::Groups, 1) > 1) kind += " in groups";
    tensor = trace.outputs(op)[0];
    if (!trace.inputs(op).empty()) words = words_of_operands(trace, op);
    words += words_of_codes(schedule, run);
  } else if (run.writes > 0) {
    tensor = schedule[schedule.writes(run)[0]].tensor;
    if (run.task == Task::Quantize && is_delayed(schedule, run)) words += ", delayed";
  }
  if (tensor != no_tensor) kind.append(" ").append(to_string(trace[tensor].dtype));
  return {kind, kind + words};
}

}  // namespace tidemark
