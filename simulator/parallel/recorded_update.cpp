// Example, AdamW of two weights a and b:
//   tensors   a  b  a.exp_avg  a.exp_avg_sq  b.exp_avg  b.exp_avg_sq  x …  →  a  b  x …
// and the graph places states for what each rank keeps of a and b.
// Tested by tests/simulator/parallel/recorded_update_test.cpp.
#include "simulator/parallel/recorded_update.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/needs.h"
#include "traces/optimizer.h"

namespace tidemark {
namespace {

/// What torch.optim calls its classes.
struct NamedOptimizer {
  std::string_view name;
  Optimizer value;
};

constexpr std::array named_optimizers = {
    NamedOptimizer{"AdamW", Optimizer::AdamW}, NamedOptimizer{"Adam", Optimizer::AdamW},
    NamedOptimizer{"SGD", Optimizer::Sgd}, NamedOptimizer{"SGD", Optimizer::SgdMomentum}};

bool is_state(const Tensor& tensor) { return tensor.category == Category::OptimizerState; }

// How many steps a weight has made: one number, which fused kernels read on the device
// (torch/optim/ adamw.py: `fused=True` puts it there, else it lies on the host).
bool is_counter(const Tensor& tensor) { return is_state(tensor) && tensor.shape.rank() == 0; }

// But counters, which ranks do not cut.
Bytes recorded_states(const Trace& trace) {
  Bytes sum;
  for (const Tensor& tensor : trace.tensors)
    if (is_state(tensor) && !is_counter(tensor)) sum += size(tensor);
  return sum;
}

// Parameters that got a gradient: those that the loss does not depend on have no states.
std::vector<const Tensor*> updated(const Trace& trace) {
  const Needs needs = derive_needs(trace);
  std::vector<bool> gets_one(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (std::uint32_t bits = needs.gradients[i]; bits != 0; bits &= bits - 1) {
      const auto input = static_cast<std::size_t>(__builtin_ctz(bits));
      gets_one[index(trace.inputs(trace.ops[i])[input])] = true;
    }
  std::vector<const Tensor*> found;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    if (gets_one[t] && tensor.category == Category::Parameter && tensor.trainable &&
        tensor.storage == static_cast<TensorId>(t))
      found.push_back(&tensor);
  }
  return found;
}

Bytes states_of(const std::vector<const Tensor*>& parameters, const OptimizerRow& row) {
  Bytes sum;
  for (const Tensor* tensor : parameters) sum += state_bytes(row, *tensor, false);
  return sum;
}

Optimizer optimizer_in(const Trace& trace) {
  const Bytes kept = recorded_states(trace);
  const std::vector<const Tensor*> parameters = updated(trace);
  for (const NamedOptimizer& known : named_optimizers)
    if (known.name == trace.update->optimizer && states_of(parameters, row_of(known.value)) == kept)
      return known.value;
  throw InputError(fmt::format(
      "of {}'s states, as they are here, it is not known what a rank keeps when parameters are "
      "cut (capture with plain AdamW or SGD, or give --shard ddp)",
      printable(trace.update->optimizer, 80)));
}

void forget_states(Trace& trace) {
  std::vector<TensorId> now(trace.tensors.size(), no_tensor);
  std::int32_t count = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (!is_state(trace.tensors[t])) now[t] = static_cast<TensorId>(count++);
  std::erase_if(trace.tensors, is_state);
  const auto move = [&](TensorId& id) {
    if (id != no_tensor) id = now[index(id)];
  };
  for (Tensor& tensor : trace.tensors) move(tensor.storage);
  for (TensorId& operand : trace.operands) move(operand);
  for (Block& block : trace.blocks) move(block.input);
  move(trace.loss);
}

}  // namespace

Trace with_update_by_its_row(Trace recorded) {
  if (!recorded.update) return recorded;
  recorded.step.optimizer = optimizer_in(recorded);
  if (std::ranges::any_of(recorded.tensors, is_counter))
    recorded.step.optimizer_form = OptimizerForm::Fused;
  for (const TensorId operand : recorded.operands)
    if (is_state(recorded[operand]))
      throw InputError(
          fmt::format("{}: the step reads this state of its optimizer, which cannot be "
                      "cut (give --shard ddp)",
                      quoted(recorded[operand].name)));
  forget_states(recorded);
  recorded.update.reset();
  return recorded;
}

}  // namespace tidemark
