// Names and sums for people, from the numbers of choices.
#include "analysis/planning/plan_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {
namespace {

class Grouping {
 public:
  Grouping(const Planner& planner, std::size_t point)
      : planner_(planner), entries_(planner.entries_at(point)) {}

  std::vector<PlanGroup> run() const {
    std::vector<PlanGroup> groups;
    for (std::size_t s = 0; s < entries_.size(); ++s) {
      if (stage(s).block < 0 && keeps_all(s)) continue;
      if (s == 0 || groups.empty() || !continues(s)) groups.push_back(begun(s));
      add(s, groups.back());
    }
    return groups;
  }

 private:
  const Stage& stage(std::size_t s) const { return planner_.stages().all[s]; }
  const Planner::Entry& entry(std::size_t s) const { return *entries_[s]; }
  const LocalPlan& local(std::size_t s) const { return entry(s).plan; }
  bool keeps_all(std::size_t s) const {
    return std::ranges::all_of(local(s).forms,
                               [](const Form& form) { return form.action == Action::Keep; });
  }

  bool continues(std::size_t s) const {
    return stage(s).block >= 0 && stage(s - 1).block >= 0 && decided(s) == decided(s - 1);
  }

  // By action the names of tensors within the stage.
  std::vector<std::pair<Action, std::vector<std::string>>> decided(std::size_t s) const {
    std::vector<std::pair<Action, std::vector<std::string>>> found;
    for (const Named<Action>& action : actions) {
      std::vector<std::string> names;
      for (std::size_t d = 0; d < stage(s).decided.size(); ++d)
        if (action.value != Action::Keep && local(s).forms[d].action == action.value)
          names.push_back(name_within(s, stage(s).decided[d]));
      if (!names.empty()) found.emplace_back(action.value, std::move(names));
    }
    return found;
  }

  std::string name_within(std::size_t s, TensorId tensor) const {
    const std::string& name = planner_.trace()[tensor].name;
    if (stage(s).block < 0) return name;
    const std::string& block = name_of_block(s);
    return name.starts_with(block + ".") ? name.substr(block.size() + 1) : name;
  }

  const std::string& name_of_block(std::size_t s) const {
    return planner_.trace().blocks[static_cast<std::size_t>(stage(s).block)].name;
  }

  PlanGroup begun(std::size_t s) const {
    PlanGroup group;
    group.is_block = stage(s).block >= 0;
    group.first = group.is_block ? name_of_block(s) : planner_.trace()[stage(s).begin].name;
    for (auto& [action, names] : decided(s))
      group.decided.push_back({action, std::move(names), {}});
    return group;
  }

  void add(std::size_t s, PlanGroup& group) const {
    group.last =
        group.is_block ? name_of_block(s) : planner_.trace().ops[index(stage(s).end) - 1].name;
    ++group.stages;
    for (PlanGroup::Decided& decided : group.decided)
      for (std::size_t d = 0; d < stage(s).decided.size(); ++d)
        if (local(s).forms[d].action == decided.action)
          decided.bytes += size(planner_.trace()[stage(s).decided[d]]);
    const StageCost& kept = planner_.kept_cost(s);
    group.saved += Bytes{kept.first.kept - entry(s).cost.first.kept};
    group.extra += Nanoseconds(entry(s).cost.time - kept.time);
  }

  const Planner& planner_;
  std::vector<const Planner::Entry*> entries_;
};

}  // namespace

std::vector<PlanGroup> groups_of(const Planner& planner, std::size_t point) {
  return Grouping(planner, point).run();
}

std::string binding_of(const Planner& planner, std::size_t point) {
  const Planner::Tightest found = planner.tightest(point);
  if (!found.stage) return "optimizer step";
  const Stage& stage = planner.stages().all[*found.stage];
  const std::string_view task = found.is_backward ? "backward" : "forward";
  if (stage.block >= 0)
    return fmt::format("{} of {}", task,
                       planner.trace().blocks[static_cast<std::size_t>(stage.block)].name);
  return fmt::format("{} of {} to {}", task, planner.trace()[stage.begin].name,
                     planner.trace().ops[index(stage.end) - 1].name);
}

}  // namespace tidemark
