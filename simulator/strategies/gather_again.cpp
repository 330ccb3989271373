// Between forward and backward a rank keeps its own part of a sequence, and not what was gathered
// from all: that is gathered once more before the gradients of the linears that read it, as
// Megatron-LM does (arXiv 2205.05198, section 4.2.2; tensor_parallel/layers.py), or before those of
// the attention that read keys and values of all context ranks.
#include <algorithm>

#include "simulator/strategies/regions.h"
#include "simulator/strategies/strategy.h"
#include "traces/exchange_axis.h"

namespace tidemark {
namespace {

bool is_inside_one(const Plan& plan, const Region& region) {
  return std::ranges::any_of(plan.regions, [&](const Region& old) {
    return old.begin <= region.begin && region.end <= old.end;
  });
}

bool cuts_one(const Plan& plan, const Region& region) {
  return std::ranges::any_of(plan.regions, [&](const Region& old) {
    return old.begin < region.end && region.begin < old.end;
  });
}

// Torch's partitioner makes no exchange again (it is none of get_default_op_list()'s recomputable
// calls). What an attention gathers is another case: its backward is written so.
bool is_kept_by_graph(const Trace& trace, const Op& gather) {
  return is_compiled(find_framework(trace.step.framework)) && gather.block >= 0 &&
         exchange_axis(trace, gather) == Axis::Tensor;
}

}  // namespace

void gather_again(const Trace& trace, const Needs& needs, Plan& plan) {
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind != OpKind::AllGather || is_kept_by_graph(trace, trace.ops[i])) continue;
    const TensorId whole = trace.outputs(trace.ops[i])[0];
    const bool is_kept = plan.decisions[index(whole)].action == Action::Keep;
    if (!is_kept || needs.uses[index(whole)] == 0) continue;
    const auto begin = static_cast<OpId>(i);
    const Region region{begin, begin, OpId(index(last_forward_use(needs, whole)) + 1)};
    if (!is_inside_one(plan, region)) {
      if (cuts_one(plan, region)) continue;
      add_region(plan, region);
    }
    decide(plan, whole, Action::Recompute,
           "gathered again from the ranks: each keeps its part of the sequence");
  }
  number_chains(plan);
}

}  // namespace tidemark
