// What must hold for the rows of opaque ops: one for each, of operands that the op has.
#include "base/quoted.h"
#include "traces/shape_rules.h"
#include "traces/trace_check.h"

namespace tidemark {
namespace {

class RowChecker {
 public:
  RowChecker(const Trace& trace, Defects& defects) : trace_(trace), defects_(defects) {}

  void check(std::size_t i);
  void check_end();

 private:
  template <typename... Args>
  void fail(std::string_view field, fmt::format_string<Args...> problem, Args&&... args) {
    defects_.add(pointer_to("ops", op_, field), problem, std::forward<Args>(args)...);
  }

  bool has_row();
  void check_operands(std::string_view field, Operands operands);
  void check_floating(std::string_view field, Operands operands);
  void check_handed_on(const OpaqueRow& row);
  void check_quantized(const OpaqueRow& row);
  void check_pass(const char* name, const OpaquePass& pass);

  const Trace& trace_;
  Defects& defects_;
  std::size_t op_ = 0, next_row_ = 0;
  Bytes workspace_;
};

// The rows stand in the order of their ops, so a trace has one form and its file reads back equal.
bool RowChecker::has_row() {
  const Op& op = trace_.ops[op_];
  if (op.kind != OpKind::Opaque) {
    if (op.opaque != no_opaque)
      fail("/row", "found one on {}; need none, it has a row in the table", to_string(op.kind));
    return false;
  }
  if (index(op.opaque) != next_row_ || next_row_ >= trace_.opaque_rows.size()) {
    fail("/row", "found row number {} of {}; need {}, the next", index(op.opaque),
         trace_.opaque_rows.size(), next_row_);
    return false;
  }
  ++next_row_;
  return true;
}

void RowChecker::check_operands(std::string_view field, Operands operands) {
  const Op& op = trace_.ops[op_];
  for (int bit = 0; bit < 32; ++bit) {
    const int count = bit < 16 ? op.inputs : op.outputs;
    if ((operands >> bit & 1) != 0 && bit % 16 >= count)
      fail(field, "found {}; need an operand that the op has ({}: {})", operand_label(bit),
           bit < 16 ? "inputs" : "outputs", count);
  }
}

void RowChecker::check_floating(std::string_view field, Operands operands) {
  const Op& op = trace_.ops[op_];
  if (!has_operands(trace_, op)) return;
  for (int bit = 0; bit < 32; ++bit) {
    const TensorId tensor = (operands >> bit & 1) == 0 ? no_tensor : operand(trace_, op, bit);
    if (exists(trace_, tensor) && !is_floating(trace_[tensor].dtype))
      fail(field, "{}, {}, is {}; need a floating-point number", operand_label(bit),
           quoted(trace_[tensor].name), to_string(trace_[tensor].dtype));
  }
}

// What is handed on must fit: it is the gradient of the first output.
void RowChecker::check_handed_on(const OpaqueRow& row) {
  const Op& op = trace_.ops[op_];
  if (!has_operands(trace_, op)) return;
  const TensorId out = operand(trace_, op, 16);
  for (int bit = 0; bit < 16; ++bit) {
    const TensorId in = (row.handed_on >> bit & 1) == 0 ? no_tensor : operand(trace_, op, bit);
    if (!exists(trace_, in) || !exists(trace_, out)) continue;
    if ((row.gradients >> bit & 1) == 0)
      fail("/row/handed_on", "found {}; need one of the inputs in gradients", operand_label(bit));
    else if (trace_[in].shape != trace_[out].shape || trace_[in].dtype != trace_[out].dtype)
      fail("/row/handed_on", "found {}; need an input of the first output's shape and dtype",
           operand_label(bit));
  }
}

void RowChecker::check_quantized(const OpaqueRow& row) {
  for (int bit = 0; bit < 32; ++bit)
    if ((row.quantized & ~row.saved) >> bit & 1)
      fail("/row/quantized", "found {}; need one of the operands in saved", operand_label(bit));
  check_floating("/row/quantized", row.quantized & row.saved);
}

void RowChecker::check_pass(const char* name, const OpaquePass& pass) {
  const auto field = [&](const char* key) { return fmt::format("/row/{}/{}", name, key); };
  const auto is_size = [](std::int64_t count) { return count >= 0 && count <= largest_size; };
  if (!is_size(pass.workspace.count))
    fail(field("workspace_bytes"), "found {}; need 0 to 2^60", pass.workspace.count);
  if (!is_size(pass.flops.value_or(0)))
    fail(field("flops"), "found {}; need 0 to 2^60", *pass.flops);
  if (!is_size(pass.moved.value_or(Bytes{}).count))
    fail(field("moved_bytes"), "found {}; need 0 to 2^60", pass.moved->count);
  if (pass.kernels < 0 || pass.kernels > most_opaque_kernels)
    fail(field("kernels"), "found {}; need 0 to {}", pass.kernels, most_opaque_kernels);
  if (!is_size(pass.workspace.count) || workspace_ > most_opaque_workspace) return;
  workspace_ += pass.workspace;
  if (workspace_ > most_opaque_workspace)
    fail(field("workspace_bytes"), "all up to this one are more than 2^58 bytes; need less");
}

void RowChecker::check(std::size_t i) {
  op_ = i;
  if (!has_row()) return;
  const OpaqueRow& row = trace_.opaque_rows[next_row_ - 1];
  if (row.operation.empty()) fail("/row/operation", "found ''; need what the framework calls it");
  check_operands("/row/gradients", row.gradients);
  check_operands("/row/saved", row.saved);
  check_floating("/row/gradients", row.gradients);
  check_operands("/row/handed_on", row.handed_on);
  check_handed_on(row);
  check_quantized(row);
  if (row.math && !is_floating(*row.math))
    fail("/row/math", "found {}; need a floating-point dtype", to_string(*row.math));
  check_pass("forward", row.forward);
  check_pass("backward", row.backward);
}

void RowChecker::check_end() {
  if (next_row_ < trace_.opaque_rows.size())
    defects_.add("/ops", "{} rows belong to no opaque op; need none",
                 trace_.opaque_rows.size() - next_row_);
}

}  // namespace

void check_opaque_rows(const Trace& trace, Defects& defects) {
  RowChecker checker(trace, defects);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) checker.check(i);
  checker.check_end();
}

}  // namespace tidemark
