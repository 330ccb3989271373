// Operands by their labels, and the figures of both passes within the limits of each.
#include "traces/opaque_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"
#include "traces/formula.h"
#include "traces/shape_rules.h"

namespace tidemark {
namespace {

Operands read_operands(JsonView object, std::string_view key) {
  Operands operands = 0;
  if (const auto list = object.find(key))
    for (const JsonView label : list->items()) operands |= Operands{1} << read_operand_label(label);
  return operands;
}

// Outputs have no bits here.
std::uint32_t read_inputs(JsonView object, std::string_view key) {
  std::uint32_t inputs = 0;
  const auto list = object.find(key);
  if (!list) return 0;
  for (const JsonView label : list->items()) {
    const int bit = read_operand_label(label);
    if (bit >= static_cast<int>(max_operands))
      label.fail(fmt::format("found {}; need an input: in0 to in15", label.text()));
    inputs |= std::uint32_t{1} << bit;
  }
  return inputs;
}

OpaquePass read_figures(JsonView object) {
  OpaquePass pass;
  pass.workspace.count = object.integer_or("workspace_bytes", 0);
  pass.scratch.count = object.integer_or("scratch_bytes", 0);
  if (object.find("flops")) pass.flops = object.at("flops").integer();
  if (object.find("moved_bytes")) pass.moved = Bytes{object.at("moved_bytes").integer()};
  pass.streamed.count = object.integer_or("streamed_bytes", 0);
  pass.kernels = static_cast<int>(object.integer_or("kernels", 1, 0, most_opaque_kernels));
  return pass;
}

OpaquePass read_pass(JsonView object) {
  object.allow_only(
      {"workspace_bytes", "scratch_bytes", "flops", "moved_bytes", "streamed_bytes", "kernels"});
  return read_figures(object);
}

DType read_math(JsonView name) {
  const auto row = std::ranges::find(dtypes, name.text(), &DTypeRow::name);
  if (row == dtypes.end())
    name.fail(unknown_name("dtype", printable(name.text()), names_of(dtypes)));
  return row->value;
}

Formula read_formula(JsonView name) {
  const auto named = std::ranges::find(formulas, name.text(), &Named<Formula>::name);
  if (named == formulas.end())
    name.fail(unknown_name("formula", printable(name.text()), names_of(formulas)));
  return named->value;
}

}  // namespace

int read_operand_label(JsonView label) {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> all;
    for (int bit = 0; bit < 32; ++bit) all.push_back(operand_label(bit));
    return all;
  }();
  const auto found = std::ranges::find(labels, label.text());
  if (found == labels.end())
    label.fail(fmt::format("found {}; need an operand: in0 to in15 or out0 to out15",
                           quoted(label.text())));
  return static_cast<int>(found - labels.begin());
}

OpaqueRow read_opaque_row(JsonView object) {
  object.allow_only({"operation", "gradients", "handed_on", "written_over", "saved", "quantized",
                     "runs_once", "math", "computes", "forward", "backward"});
  OpaqueRow row;
  row.operation = object.at("operation").text();
  row.gradients = read_inputs(object, "gradients");
  row.handed_on = read_inputs(object, "handed_on");
  row.written_over = read_inputs(object, "written_over");
  row.saved = read_operands(object, "saved");
  row.quantized = read_operands(object, "quantized");
  row.runs_once = object.boolean_or("runs_once", false);
  if (const auto math = object.find("math")) row.math = read_math(*math);
  if (const auto computes = object.find("computes")) row.computes = read_formula(*computes);
  if (const auto forward = object.find("forward")) row.forward = read_pass(*forward);
  if (const auto backward = object.find("backward")) row.backward = read_pass(*backward);
  return row;
}

RecordedUpdate read_update(JsonView object) {
  object.allow_only({"optimizer", "workspace_bytes", "scratch_bytes", "flops", "moved_bytes",
                     "streamed_bytes", "kernels"});
  return {.optimizer = std::string(object.at("optimizer").text()), .pass = read_figures(object)};
}

}  // namespace tidemark
