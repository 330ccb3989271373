// Where a stack of coupled blocks ends, what stands behind it reads outputs that no gradient needs.
// They are freed by then, unless the last block undoes its couplings, or a rerun behind reads them,
// or both: what that costs is no sum of the two. So the stage behind is there twice in the chain,
// measured behind a block that undoes its couplings and behind one that does not.
//
//   … ─ block ─┬─(does not)─ fuse ──┬─ block ─ …
//              └─(undoes)─── fuse′ ─┘
#include <algorithm>

#include "simulator/planner/planner.h"

namespace tidemark {

Links Planner::links_of(const Mode& mode) const {
  Links links;
  for (std::uint32_t s = 0; s < stages_.all.size(); ++s) {
    links.of_stage.push_back(static_cast<std::uint32_t>(links.all.size()));
    links.all.push_back({s});
    const bool is_behind = s > 0 && undoes_[stages_.all[s - 1].kind] &&
                           hands_on_unsaved(stages_.all[s - 1]) && !mode.behind.empty() &&
                           !mode.behind[stages_.all[s].kind].empty();
    if (is_behind) links.all.push_back({s, true});
  }
  links.of_stage.push_back(static_cast<std::uint32_t>(links.all.size()));
  return links;
}

// Sums of couplings that no gradient needs, read last behind the stage.
bool Planner::hands_on_unsaved(const Stage& stage) const {
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    const Op& op = trace_->ops[i];
    if (!op.residual || !row_of(op.kind).inverts_input0) continue;
    const TensorId sum = (*trace_)[trace_->outputs(op)[0]].storage;
    const OpId last = needs_.last_read[index(sum)];
    if (needs_.uses[index(sum)] == 0 && last != no_op && last >= stage.end) return true;
  }
  return false;
}

void Planner::measure_behind(Mode& mode) const {
  std::vector<std::uint32_t> stages;
  std::vector<Menu>& menus = mode.menus.front();
  for (std::uint32_t s = 0; s + 1 < stages_.all.size(); ++s)
    if (undoes_[stages_.all[s].kind] && hands_on_unsaved(stages_.all[s])) stages.push_back(s + 1);
  if (stages.empty()) return;
  mode.behind.resize(menus.size());
  for (const std::uint32_t s : stages)
    mode.behind[stages_.all[s].kind] = menus[stages_.all[s].kind];
  measure_behind(stages, mode, mode.behind, true);
  measure_behind(stages, mode, menus, false);
}

// Every entry of these stages, behind blocks of which all undo their couplings, or none.
void Planner::measure_behind(const std::vector<std::uint32_t>& stages, const Mode& mode,
                             std::vector<Menu>& menus, bool undoes) const {
  std::vector<const LocalPlan*> locals;
  for (const Stage& stage : stages_.all) {
    const Menu& menu = mode.menus.front()[stage.kind];
    const auto same = std::ranges::find(
        menu, undoes, [](const Entry& entry) { return reconstructs_inputs(entry.plan); });
    locals.push_back(&(same == menu.end() ? menu.front() : *same).plan);
  }
  std::size_t rounds = 0;
  const auto menu_of = [&](std::uint32_t s) -> Menu& { return menus[stages_.all[s].kind]; };
  for (const std::uint32_t s : stages) rounds = std::max(rounds, menu_of(s).size());
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto entry_of = [&](std::uint32_t s) -> Entry& {
      return menu_of(s)[std::min(round, menu_of(s).size() - 1)];
    };
    for (const std::uint32_t s : stages) locals[s] = &entry_of(s).plan;
    const Survey found = survey_of(stages_, locals);
    for (const std::uint32_t s : stages) entry_of(s).cost = found.stages[s];
  }
}

}  // namespace tidemark
