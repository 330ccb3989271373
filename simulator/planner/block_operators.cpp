// Operators of single blocks: menus of steps that have them everywhere, put together block by
// block, and the trace that such a mixture is of.
#include <algorithm>
#include <array>
#include <map>

#include "simulator/planner/planner.h"
#include "simulator/strategies/block_list.h"

namespace tidemark {
namespace {

using Components = std::vector<StrategySpec::Component>;

// The operators in these blocks alone.
Components in_blocks(Components components, const BlockList& blocks) {
  for (auto& component : components) component.arguments.chosen = {chosen_blocks(blocks)};
  return components;
}

// Every second block, the first of them or the second.
BlockList every_second(const Trace& trace, std::int32_t first) {
  BlockList blocks;
  for (std::int32_t b = first; b < std::ssize(trace.blocks); b += 2) blocks.push_back(b);
  return blocks;
}

// Each block beside such as it is not: it has to be what it is among its like, and they, too.
bool is_sum_of_blocks(const Planner& plain, const BlockOperators& operators,
                      const BlockList& blocks) {
  PlannedStep step{std::make_shared<const Trace>(plain.trace()), {}, {}};
  step.rewrites = in_blocks(operators.components, blocks);
  if (!rewrite(step).empty()) return false;
  const Needs needs = derive_needs(*step.trace);
  const Stages stages = stages_of(*step.trace, needs);
  const Planner& everywhere = *operators.everywhere;
  if (stages.all.size() != plain.stages().all.size()) return false;
  const auto mixed = signatures_of(*step.trace, needs, stages);
  const auto before = signatures_of(plain.trace(), plain.needs(), plain.stages());
  const auto after = signatures_of(everywhere.trace(), everywhere.needs(), everywhere.stages());
  for (std::size_t s = 0; s < mixed.size(); ++s) {
    const bool is_changed = std::ranges::binary_search(blocks, stages.all[s].block);
    if (mixed[s] != (is_changed ? after : before)[s]) return false;
  }
  return true;
}

}  // namespace

bool Planner::takes_in_blocks(const BlockOperators& operators) const {
  const Planner& everywhere = *operators.everywhere;
  if (everywhere.stages_.all.size() != stages_.all.size()) return false;
  if (!everywhere.has_block_within_bound()) return false;
  if (!std::ranges::equal(everywhere.modes_, modes_, {}, &Mode::held, &Mode::held)) return false;
  return std::ranges::all_of(std::array{0, 1}, [&](std::int32_t first) {
    const BlockList blocks = every_second(*trace_, first);
    return !blocks.empty() && is_sum_of_blocks(*this, operators, blocks);
  });
}

Planner::Planner(const Planner& plain, std::vector<BlockOperators> operators) : Planner(plain) {
  operators_ = std::move(operators);
  for (const BlockOperators& each : operators_)
    steady_ = std::max(steady_, each.everywhere->steady_);
  for (const Mode& mode : plain.modes_) modes_.push_back({mode.held, mode.menus});
  solve_all();
}

const Components& Planner::operators_of(const Part& part) const {
  static const Components none;
  return part.operators == 0 ? none : operators_[part.operators - 1].components;
}

// Each operator once, with all blocks that have it, in the order of the strategy table.
Components Planner::operators_at(const std::vector<Part>& parts) const {
  std::map<const StrategyRow*, BlockList> blocks;
  for (const Part& part : parts)
    for (const auto& component : operators_of(part))
      for (std::uint32_t s = part.first; s < part.first + part.count; ++s)
        blocks[component.row].push_back(stages_.all[s].block);
  Components found;
  for (const auto& [row, list] : blocks) found.push_back({row, {{chosen_blocks(list)}}});
  return found;
}

PlannedStep Planner::step_at(std::size_t point) const {
  const std::vector<Part> parts = parts_at(point);
  PlannedStep step{trace_, {}, {}};
  step.rewrites = operators_at(parts);
  auto derived = std::make_shared<Derived>();
  if (const Plan* whole = whole_plan(point)) {
    derived->needs = needs_;
    step.plan = *whole;
  } else if (step.rewrites.empty()) {
    derived->needs = needs_;
    step.plan = keep_everything(*trace_);
    for (const Part& part : parts) apply(*trace_, *part.stage, part.entry->plan, step.plan);
  } else {
    CHECK(rewrite(step).empty());
    derived->needs = derive_needs(*step.trace);
    step.plan = keep_everything(*step.trace);
    const Stages stages = stages_of(*step.trace, derived->needs);
    for (const Part& part : parts)
      apply(*step.trace,
            part.count == 1
                ? stages.all[part.first]
                : joined_stage(*step.trace, derived->needs, stages, part.first, part.count),
            part.entry->plan, step.plan);
  }
  derived->recovery = derive_recovery(*step.trace, step.plan, derived->needs);
  step.derived = std::move(derived);
  return step;
}

}  // namespace tidemark
