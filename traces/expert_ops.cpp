// Rows of the ops of experts. Where no figure is given, a pass is one walk over the operands.
#include "traces/expert_ops.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "traces/engine_linear.h"

namespace tidemark {
namespace {

OpaquePass product_of(std::int64_t flops) {
  OpaquePass pass;
  pass.flops = flops;
  return pass;
}

// argsort() of all places makes indices and sorted flags beside them.
OpaquePass sorting(const Shape& places) {
  OpaquePass pass;
  pass.workspace = Bytes{numel(places) * (size_of(DType::Int64) + size_of(DType::Bool))};
  return pass;
}

// The gradients of a product are two products.
OpaqueRow product_row(std::string name, std::int64_t flops) {
  return {.operation = std::move(name),
          .gradients = 0b11,
          .saved = input_bit(0) | input_bit(1),
          .forward = product_of(flops),
          .backward = product_of(2 * flops)};
}

OpaqueRow row_of(ExpertOp op, std::string name, const Shape& first, const Shape& second) {
  switch (op) {
    case ExpertOp::Gate:
      return product_row(std::move(name), 2 * numel(first) * second[0]);
    case ExpertOp::Pick:
      return {
          .operation = std::move(name), .gradients = 0b1, .saved = output_bit(2) | output_bit(3)};
    case ExpertOp::Permute:
      return {.operation = std::move(name),
              .gradients = 0b1,
              .saved = output_bit(1),
              .forward = sorting(second)};
    case ExpertOp::Weigh:
      return {.operation = std::move(name), .gradients = 0b1, .saved = input_bit(1)};
    case ExpertOp::Exchange:
    case ExpertOp::GatherTokens:
    case ExpertOp::ScatterTokens:  // whose time is that of its ranks' links
      return {.operation = std::move(name),
              .gradients = 0b1,
              .forward = {.kernels = 0},
              .backward = {.kernels = 0}};
    case ExpertOp::PickShares:
      return {.operation = std::move(name), .gradients = 0b1, .saved = input_bit(0) | input_bit(1)};
    case ExpertOp::OwnColumns:
    case ExpertOp::Sort:
      return {.operation = std::move(name), .gradients = 0b1};
    case ExpertOp::Product:
    case ExpertOp::ProductOfEach:
      return product_row(std::move(name), 2 * numel(first) * second.back());
    case ExpertOp::Swiglu:
    case ExpertOp::WeightedSquare:
      return {
          .operation = std::move(name), .gradients = 0b11, .saved = input_bit(0) | input_bit(1)};
    case ExpertOp::Unpermute:
      return {.operation = std::move(name), .gradients = 0b1, .saved = input_bit(1)};
    case ExpertOp::Gated:
    case ExpertOp::Square:
      return {.operation = std::move(name),
              .gradients = 0b1,
              .saved = input_bit(0),
              .quantized = input_bit(0)};
  }
  CHECK(false);
  return {};
}

}  // namespace

std::optional<ExpertOp> expert_op(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  if (!row) return {};
  const auto found = std::ranges::find(expert_ops, row->operation, &Named<ExpertOp>::name);
  return found == expert_ops.end() ? std::optional<ExpertOp>() : found->value;
}

bool is_product_of_experts(const Trace& trace, const Op& op) {
  return expert_op(trace, op) == ExpertOp::ProductOfEach || is_grouped_product(trace, op);
}

bool is_grouped_product(const Trace& trace, const Op& op) {
  return expert_op(trace, op) == ExpertOp::Product ||
         (is_engine_product(trace, op) && trace[trace.inputs(op)[1]].shape.rank() == 3);
}

OpaqueRow expert_row(ExpertOp op, const Shape& first, const Shape& second) {
  return row_of(op, std::string(expert_ops[static_cast<std::size_t>(op)].name), first, second);
}

OpaqueRow gated_row(Bytes of_input) {
  OpaqueRow row = expert_row(ExpertOp::Gated, {});
  row.forward.moved = Bytes{of_input.count / 2 * 3};
  row.backward.moved = Bytes{of_input.count / 2 * 5};
  return row;
}

OpaqueRow squared_row(Bytes of_input) {
  OpaqueRow row = expert_row(ExpertOp::Square, {});
  row.forward.moved = Bytes{of_input.count * 2};
  row.backward.moved = Bytes{of_input.count * 3};
  return row;
}

void recount_expert_ops(Trace& trace) {
  for (const Op& op : trace.ops) {
    const std::optional<ExpertOp> kind = expert_op(trace, op);
    if (!kind) continue;
    const auto inputs = trace.inputs(op);
    if (kind == ExpertOp::Gated) {
      trace.opaque_rows[index(op.opaque)] = gated_row(size(trace[inputs[0]]));
      continue;
    }
    if (kind == ExpertOp::Square) {
      trace.opaque_rows[index(op.opaque)] = squared_row(size(trace[inputs[0]]));
      continue;
    }
    OpaqueRow& row = trace.opaque_rows[index(op.opaque)];
    const std::uint32_t gradients = row.gradients;
    row = expert_row(*kind, trace[inputs[0]].shape,
                     inputs.size() > 1 ? trace[inputs[1]].shape : Shape());
    row.gradients = gradients;  // none of who is picked
  }
}

std::int64_t experts_in(const Trace& trace) {
  for (const Op& op : trace.ops)
    if (is_product_of_experts(trace, op)) return trace[trace.inputs(op)[1]].shape[0];
  return 0;
}

std::vector<bool> parameters_of_experts(const Trace& trace) {
  std::vector<bool> is_of_experts(trace.tensors.size());
  if (trace.step.mesh.experts == 1) return is_of_experts;
  for (const Op& op : trace.ops)
    if (is_product_of_experts(trace, op))
      for (const TensorId weight : trace.inputs(op).subspan(1)) is_of_experts[index(weight)] = true;
  for (const Op& op : trace.ops)  // under autocast products read copies
    if (op.kind == OpKind::Cast && is_of_experts[index(trace.outputs(op)[0])])
      is_of_experts[index(trace.inputs(op)[0])] = true;
  return is_of_experts;
}

}  // namespace tidemark
