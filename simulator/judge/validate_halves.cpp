// The judge's idea of backward passes in two halves: each gradient is made once per micro-batch, by
// whichever half; what comes later is needed by nothing but parameters.
#include <algorithm>

#include "simulator/judge/validate_runs.h"

namespace tidemark::judge {

void Runs::begin_split() {
  contributed_.resize(trace_.operands.size());
  is_made_of_parameters_.resize(trace_.tensors.size());
  for (std::size_t t = 0; t < is_made_of_parameters_.size(); ++t)
    is_made_of_parameters_[t] = trace_.tensors[t].category == Category::Parameter;
  for (const Op& op : trace_.ops) {
    bool all = true;
    for (const TensorId input : trace_.inputs(op))
      all = all && is_made_of_parameters_[index(input)];
    for (const TensorId output : trace_.outputs(op)) is_made_of_parameters_[index(output)] = all;
  }
}

// One half of an op's backward: any of the gradients that no other run has made of this
// micro-batch, but the second half only those that nothing but parameters needs.
void Runs::split_backward(const Run& run) {
  const Op& op = trace_[run.op];
  Operands needs = 0;
  bool writes_any = false;
  for (std::size_t k = 0; k < op.inputs; ++k) {
    const auto& c = numbers_.contribution(op, k);
    const TensorId input = trace_.inputs(op)[k];
    const bool is_its = std::ranges::any_of(writes_, [&](const Operand& w) {
      return !w.is_expected && buffer(w).role == Role::Gradient && buffer(w).tensor == input;
    });
    const bool is_elsewhere =
        c.is_fresh && !is_its &&
        (write_over_value(op, k, c.number) || add_to_main_gradient(input, c.number));
    if (!c.is_fresh || (!is_its && !is_elsewhere)) continue;
    if (is_its) write(Role::Gradient, input, c.number);
    writes_any = true;
    needs |= gradient_rule(trace_, op, k).needs;
    if (run.task == Task::WeightGradient && !is_made_of_parameters_[index(input)])
      memory_.complain("puts off the gradient of {}, which others need", memory_.name(input));
    if (++contributed_[op.first_operand + k] > forward_runs_[index(run.op)] && !is_view(op.kind))
      memory_.complain("goes back through a micro-batch that has not come");
  }
  has_run_back_[index(run.op)] = true;
  if (!writes_any) return memory_.complain("has no gradient to write");
  for (const TensorId output : trace_.outputs(op))
    if (numbers_.has_gradient(output)) read_gradient(output);
  for (std::size_t k = 0; k < std::size_t{op.inputs} + op.outputs; ++k) {
    const Operands bit = bit_of(op, k);
    if (((needs | op.also_keeps) & bit) != 0) read_saved(op, k, (needs & bit) != 0);
  }
  if (const OpaqueRow* row = opaque_row(trace_, op)) check_workspace(row->backward.workspace);
}

void Runs::check_contributions(const Op& op, std::int64_t wanted) {
  for (std::size_t k = 0; k < op.inputs; ++k)
    if (const std::int64_t made = contributed_[op.first_operand + k];
        numbers_.contribution(op, k).is_fresh && made != wanted)
      memory_.complain("{} made a gradient of {} {} times of {}", op.name,
                       memory_.name(trace_.inputs(op)[k]), made, wanted);
}

}  // namespace tidemark::judge
