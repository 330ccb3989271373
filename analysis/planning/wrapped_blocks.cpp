// Reads local plans back: a block with a region is wrapped.
#include "analysis/planning/wrapped_blocks.h"

#include <algorithm>
#include <map>

#include "simulator/planner/policy_form.h"
#include "traces/aten_calls.h"

namespace tidemark {

std::vector<WrappedBlock> wrapped_blocks(const Planner& planner, std::size_t point) {
  std::vector<WrappedBlock> blocks;
  for (const Planner::Part& part : planner.parts_at(point)) {
    if (part.stage->block < 0) continue;
    const LocalPlan& local = part.entry->plan;
    blocks.push_back({planner.trace().blocks[static_cast<std::size_t>(part.stage->block)].name,
                      !local.regions.empty(), saved_ops(planner.trace(), *part.stage, local)});
  }
  return blocks;
}

std::vector<SavedCall> saved_calls(const Trace& trace, const Block& block,
                                   const std::vector<OpId>& saved) {
  std::map<std::string_view, std::size_t> counts;
  std::vector<SavedCall> calls;
  for (std::size_t i = index(block.begin); i < index(block.end); ++i) {
    const Op& op = trace.ops[i];
    const std::optional<AtenCall> call = named_call(trace, op);
    if (!call) continue;
    const std::size_t number = counts[call->group]++;
    if (std::ranges::find(saved, static_cast<OpId>(i)) == saved.end()) continue;
    const bool is_product = op.kind == OpKind::Linear || op.kind == OpKind::MatMul;
    calls.push_back(
        {call->group, number, is_product ? trace[trace.outputs(op)[0]].shape.back() : 0});
  }
  return calls;
}

}  // namespace tidemark
