// Offloading (vDNN, arXiv 1602.08124): what a block keeps for its backward waits in the host's
// memory. While a block computes, the tensors of the one before leave; while a block's gradients
// are computed, those of the next one to come are fetched.
#include <algorithm>

#include "simulator/graph/recovery.h"
#include "simulator/strategies/consumers.h"
#include "simulator/strategies/least_offloaded.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

class Blocks {
 public:
  explicit Blocks(const Trace& trace) : trace_(trace) {}

  /// The block that holds the op; none for what stands before, between and behind blocks.
  std::optional<std::size_t> of(OpId op) const {
    const auto after = std::ranges::upper_bound(trace_.blocks, op, {}, &Block::begin);
    if (after == trace_.blocks.begin() || op >= std::prev(after)->end) return std::nullopt;
    return static_cast<std::size_t>(std::prev(after) - trace_.blocks.begin());
  }
  OpId begin(std::size_t block) const {
    if (block < trace_.blocks.size()) return trace_.blocks[block].begin;
    return static_cast<OpId>(trace_.ops.size() - 1);
  }
  OpId last_op(std::size_t block) const {
    const Block& found = trace_.blocks[std::min(block, trace_.blocks.size() - 1)];
    return static_cast<OpId>(index(found.end) - 1);
  }

 private:
  const Trace& trace_;
};

}  // namespace

Refusal offload_saved(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                      Plan& plan) {
  if (trace.blocks.size() < 2) return "the trace names no blocks between which copies could run";
  const auto every = static_cast<std::size_t>(arguments.number("every").value_or(1));
  const auto ahead = static_cast<std::size_t>(arguments.number("prefetch").value_or(1));
  const Recovery recovery = derive_recovery(trace, plan, needs);
  const Blocks blocks(trace);
  plan.left_by.assign(trace.tensors.size(), no_op);
  plan.fetched_at.assign(trace.tensors.size(), no_op);
  bool any = false;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (needs.producer[t] == no_op || size(trace[id]) < least_offloaded) continue;
    const bool waits = plan.decisions[t].action == Action::Keep && recovery.uses[t] > 0 &&
                       !is_made_again(needs, recovery, id);
    if (!waits) continue;
    // Who uses it last needs it first in the backward; the last block needs it at once. What only
    // the backward reads, such as statistics, is used last by who makes it.
    const std::optional<std::size_t> block = blocks.of(last_forward_use(needs, id));
    if (!block || *block + 1 == trace.blocks.size() || *block % every != 0) continue;
    decide(plan, id, Action::Offload, "waits in the host's memory");
    plan.left_by[t] = blocks.begin(*block + 1 + ahead);
    plan.fetched_at[t] = blocks.last_op(*block + ahead);
    any = true;
  }
  return any ? Refusal{} : "no block but the last keeps anything for its backward";
}

}  // namespace tidemark
