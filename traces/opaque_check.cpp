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
  void check_quantized(const OpaqueRow& row);
  void check_handed_on(const OpaqueRow& row);
  void check_written_over(const OpaqueRow& row);
  void check_pass(const std::string& place, const OpaquePass& pass);
  void add_up(const std::string& place, Bytes size, Bytes& sum);

  const Trace& trace_;
  Defects& defects_;
  std::size_t op_ = 0, next_row_ = 0;
  Bytes workspace_, scratch_;
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

void RowChecker::check_quantized(const OpaqueRow& row) {
  for (int bit = 0; bit < 32; ++bit)
    if ((row.quantized & ~row.saved) >> bit & 1)
      fail("/row/quantized", "found {}; need one of the operands in saved", operand_label(bit));
  check_floating("/row/quantized", row.quantized & row.saved);
}

// It is shared as it is, so it has to be a number of the same kind.
void RowChecker::check_handed_on(const OpaqueRow& row) {
  const Op& op = trace_.ops[op_];
  for (int bit = 0; bit < 16; ++bit) {
    if ((row.handed_on >> bit & 1) == 0) continue;
    if ((row.gradients >> bit & 1) == 0) {
      fail("/row/handed_on", "found {}; need one of the inputs in gradients", operand_label(bit));
      continue;
    }
    if (!has_operands(trace_, op) || op.outputs == 0) continue;
    const TensorId from = operand(trace_, op, 16), to = operand(trace_, op, bit);
    if (exists(trace_, from) && exists(trace_, to) && trace_[from].dtype != trace_[to].dtype)
      fail("/row/handed_on", "{}, {}, is {}; need {} as out0", operand_label(bit),
           quoted(trace_[to].name), to_string(trace_[to].dtype), to_string(trace_[from].dtype));
  }
}

// The gradient takes the value's memory, which therefore is its own, and which nobody reads later.
void RowChecker::check_written_over(const OpaqueRow& row) {
  for (int bit = 0; bit < 16; ++bit) {
    if ((row.written_over >> bit & 1) == 0) continue;
    if (((row.gradients & row.saved & ~row.handed_on) >> bit & 1) == 0) {
      fail("/row/written_over",
           "found {}; need one of the inputs in gradients and saved, not in handed_on",
           operand_label(bit));
      continue;
    }
    const Op& op = trace_.ops[op_];
    const TensorId input = has_operands(trace_, op) ? operand(trace_, op, bit) : no_tensor;
    if (!exists(trace_, input)) continue;
    const Tensor& value = trace_[input];
    if (value.category != Category::Activation || value.storage != input)
      fail("/row/written_over", "{}, {}, is {}; need a value of the step with memory of its own",
           operand_label(bit), quoted(value.name),
           value.storage != input ? "a view" : to_string(value.category));
  }
}

void RowChecker::check_pass(const std::string& place, const OpaquePass& pass) {
  const auto need_size = [&](const char* key, std::int64_t count) {
    const bool is_size = count >= 0 && count <= largest_size;
    if (!is_size) defects_.add(place + key, "found {}; need 0 to 2^60", count);
    return is_size;
  };
  const bool is_countable = need_size("/workspace_bytes", pass.workspace.count);
  const bool is_scratch_countable = need_size("/scratch_bytes", pass.scratch.count);
  need_size("/flops", pass.flops.value_or(0));
  need_size("/moved_bytes", pass.moved.value_or(Bytes{}).count);
  need_size("/streamed_bytes", pass.streamed.count);
  if (pass.kernels < 0 || pass.kernels > most_opaque_kernels)
    defects_.add(place + "/kernels", "found {}; need 0 to {}", pass.kernels, most_opaque_kernels);
  if (is_countable) add_up(place + "/workspace_bytes", pass.workspace, workspace_);
  if (is_scratch_countable) add_up(place + "/scratch_bytes", pass.scratch, scratch_);
}

void RowChecker::add_up(const std::string& place, Bytes size, Bytes& sum) {
  if (sum > most_opaque_workspace) return;
  sum += size;
  if (sum > most_opaque_workspace)
    defects_.add(place, "all up to this one are more than 2^58 bytes; need less");
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
  check_quantized(row);
  const bool are_codes = row.math == DType::Float8 || row.math == DType::Float4x2;
  if (row.math && !is_floating(*row.math) && !are_codes)
    fail("/row/math", "found {}; need a floating-point dtype", to_string(*row.math));
  check_handed_on(row);
  check_operands("/row/written_over", row.written_over);
  check_written_over(row);
  check_pass(pointer_to("ops", i, "/row/forward"), row.forward);
  check_pass(pointer_to("ops", i, "/row/backward"), row.backward);
}

void RowChecker::check_end() {
  if (trace_.update) {
    if (trace_.update->optimizer.empty())
      defects_.add("/update/optimizer", "found ''; need what the framework calls it");
    check_pass("/update", trace_.update->pass);
  }
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
