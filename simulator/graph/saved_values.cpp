// One place decides by action; each technique is a part of its own, which most plans do without.
#include "simulator/graph/saved_values.h"

namespace tidemark {

SavedValues::SavedValues(const Trace& trace, const Plan& of_plan, const Derived& of_both,
                         GraphBuilder& graph, NamedInstances& names)
    : plan(of_plan), derived(of_both), present(trace, plan, graph, names) {
  if (fewest_bits(plan) != 0)
    coded.emplace(trace, plan, derived.needs, derived.recovery, graph, present);
  if (offloads(plan)) offloaded.emplace(trace, plan, derived.needs, graph, present);
}

void SavedValues::read_value_or_codes(TensorId storage, Operation& operation) const {
  if (present.is_present(storage)) return operation.read(present.of(storage));
  coded->read(storage, operation);
}

void SavedValues::ensure_present(TensorId storage, Lane lane) {
  if (present.is_present(storage)) return;
  if (offloaded && offloaded->has(storage)) return offloaded->copy_in(storage, lane);
  CHECK(coded && coded->has(storage));
  coded->dequantize(storage, lane);
}

void SavedValues::end_forward(TensorId storage) {
  if (present.reads_to_come(storage) == 0 ||
      is_made_again(derived.needs, derived.recovery, storage))
    return present.drop(storage, no_op);
  switch (plan.decisions[index(storage)].action) {
    case Action::Keep:
      return;
    case Action::Quantize:
      coded->quantize(storage);
      break;
    case Action::Offload:
      offloaded->copy_out(storage);
      break;
    case Action::Recompute:
    case Action::Reconstruct:
      break;
  }
  present.drop(storage, no_op);
}

void SavedValues::forget(TensorId storage, OpId at) {
  present.drop(storage, at);
  if (coded) coded->release(storage);
}

}  // namespace tidemark
