// Plans for coupled blocks: reversible (arXiv 2302.04869) and PaReprop (arXiv 2306.09342).
//   inverse   X2 = Y2 − G(Y1)        X1 = Y1 − F(X2)
// Only the outputs of the last block of a stack are kept. Each block's inputs follow from its
// outputs, and what else its gradients need is recomputed from those.
#include <algorithm>

#include "simulator/derived.h"
#include "simulator/needs.h"
#include "simulator/strategies/consumers.h"
#include "simulator/strategies/couplings.h"
#include "simulator/strategies/halves.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

// A coupled block of the rewritten trace.
struct Coupled {
  std::size_t block;
  OpId begin, split, end;
  TensorId y1, y2;   ///< outputs of the two adds
  TensorId f, g;     ///< branches
  bool first, last;  ///< of its stack
  std::int32_t stack;
};

std::vector<Coupled> coupled_blocks(const Trace& trace) {
  std::vector<Coupled> found;
  const std::vector<bool> can = can_be_coupled(trace);
  for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
    if (!can[b]) continue;
    const Block& block = trace.blocks[b];
    const auto f = half_of(trace, block, Part::F), g = half_of(trace, block, Part::G);
    const Op& add1 = trace.ops[f->add];
    const Op& add2 = trace.ops[g->add];
    const auto same_stack = [&](std::size_t other) {
      return other < trace.blocks.size() && trace.blocks[other].stack == block.stack;
    };
    found.push_back({b, block.begin, static_cast<OpId>(g->ops.begin), block.end,
                     trace.outputs(add1)[0], trace.outputs(add2)[0], trace.inputs(add1)[1],
                     trace.inputs(add2)[1], !same_stack(b - 1), !same_stack(b + 1), block.stack});
  }
  return found;
}

void decide_block(const Trace& trace, const Needs& needs, const Coupled& block, Plan& plan) {
  for (std::size_t i = index(block.begin); i < index(block.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i])) {
      if (trace[output].storage != output || needs.uses[index(output)] == 0) continue;
      if (output == block.y1 || output == block.y2 || last_forward_use(needs, output) >= block.end)
        continue;
      decide(plan, output, Action::Recompute, "recomputed inside its reversible block");
    }
  const TensorId entry = trace[trace.blocks[block.block].input].storage;
  if (block.first && needs.producer[index(entry)] != no_op && needs.uses[index(entry)] > 0)
    decide(plan, entry, Action::Reconstruct, "the entry of a reversible stack, X = Y − F or G");
  if (block.last) return;
  for (const TensorId state : {block.y1, block.y2})
    decide(plan, trace[state].storage, Action::Reconstruct,
           "a state of a reversible stack, recovered from the next: X = Y − F or G");
}

Refusal reconstruct(const Trace& trace, const Needs& needs, Plan& plan) {
  const std::vector<Coupled> blocks = coupled_blocks(trace);
  if (blocks.empty()) return "no block has two residual branches that could be coupled";
  std::vector<Region> regions;
  for (const Coupled& block : blocks) {
    decide_block(trace, needs, block, plan);
    regions.push_back({block.begin, block.split, block.end, block.stack});
  }
  // Regions of other techniques inside of a block are recovered with it.
  for (const Region& old : plan.regions) {
    const auto inside = [&](const Region& r) { return old.begin >= r.begin && old.end <= r.end; };
    if (std::ranges::none_of(regions, inside)) regions.push_back(old);
  }
  std::ranges::sort(regions, {}, &Region::begin);
  plan.regions = std::move(regions);
  return {};
}

// One stream recovers half a block at a time: the lower peak.
void split_into_halves(Plan& plan) {
  std::vector<Region> halves;
  for (const Region& region : plan.regions) {
    if (region.split > region.begin)
      halves.push_back({region.begin, region.begin, region.split, region.chain});
    halves.push_back({region.split, region.split, region.end, region.chain});
  }
  plan.regions = std::move(halves);
}

// What variables of the public code still name. `graph`: saved tensors of a half live until its
// gradients are done (retain_graph); `context`: the states and branches that a Python tuple holds
// until the next block's turn.
enum class Names : std::uint8_t { Graph, Context };

template <typename Hold>
void hold_graph(const Trace& trace, const Plan& plan, const Coupled& block, Hold hold) {
  for (std::size_t i = index(block.begin); i < index(block.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (plan.decisions[index(output)].action == Action::Recompute)
        hold(output, static_cast<OpId>(i) < block.split ? block.begin : block.split);
}

// The tuple is replaced when the block before has been recovered: at the first of its gradients.
template <typename Hold>
void hold_context(const Coupled& block, Hold hold) {
  const OpId next_turn =
      index(block.begin) == 0 ? no_op : static_cast<OpId>(index(block.begin) - 1);
  hold(block.f, next_turn);
  hold(block.g, next_turn);
  if (block.last) return;
  hold(block.y1, next_turn);
  hold(block.y2, static_cast<OpId>(index(block.end) - 1));  // X2 of the block behind, in its tuple
}

void hold_as_released(const Trace& trace, Names names, Plan& plan) {
  plan.value_release_after.assign(trace.tensors.size(), no_op);
  plan.gradient_release_after.assign(trace.tensors.size(), no_op);
  const auto hold = [&](TensorId t, OpId op) {
    plan.value_release_after[index(trace[t].storage)] = op;
  };
  OpId stack_begin{};
  for (const Coupled& block : coupled_blocks(trace)) {
    if (block.first) stack_begin = block.begin;
    for (const TensorId state : {block.y1, block.y2}) {
      const OpId until = block.last ? stack_begin : block.begin;
      plan.gradient_release_after[index(state)] = until;
      hold(state, until);
    }
    if (names == Names::Graph) {
      hold_graph(trace, plan, block, hold);
    } else {
      hold_context(block, hold);
    }
  }
}

// In a block that is not, the branch reads what its own result is added to.
bool is_coupled(const Trace& trace, const Coupled& block) {
  const auto f = half_of(trace, trace.blocks[block.block], Part::F);
  const TensorId added = trace[trace.inputs(trace.ops[f->add])[0]].storage;
  const Op& first = trace.ops[f->ops.begin];
  return block.first || std::ranges::none_of(trace.inputs(first), [&](TensorId input) {
           return trace[input].storage == added;
         });
}

}  // namespace

std::vector<Plan> plans_of_couplings(const Trace& trace, const Needs& needs) {
  std::vector<Plan> plans;
  const std::vector<Coupled> blocks = coupled_blocks(trace);
  if (blocks.empty() ||
      !std::ranges::all_of(blocks, [&](const Coupled& block) { return is_coupled(trace, block); }))
    return plans;
  for (const auto decide : {reconstruct_blocks, reconstruct_in_parallel}) {
    Plan plan = keep_everything(trace);
    Derived derived{.needs = needs, .recovery = {}};
    if (!decide(trace, needs, {}, plan).empty() || !check(trace, plan, derived).empty()) continue;
    plan.overlap = false;
    plans.push_back(std::move(plan));
  }
  return plans;
}

Refusal reconstruct_blocks(const Trace& trace, const Needs& needs,
                           const StrategyArguments& arguments, Plan& plan) {
  if (Refusal refusal = reconstruct(trace, needs, plan); !refusal.empty()) return refusal;
  split_into_halves(plan);
  if (arguments.has("released")) hold_as_released(trace, Names::Graph, plan);
  return {};
}

Refusal reconstruct_in_parallel(const Trace& trace, const Needs& needs,
                                const StrategyArguments& arguments, Plan& plan) {
  if (Refusal refusal = reconstruct(trace, needs, plan); !refusal.empty()) return refusal;
  plan.overlap = true;
  if (arguments.has("hoist"))
    for (Region& region : plan.regions) region.chain = 0;
  if (arguments.has("released")) {
    hold_as_released(trace, Names::Context, plan);
    plan.quirks.synchronizes_host = plan.quirks.two_new_streams = true;
  }
  return {};
}

}  // namespace tidemark
