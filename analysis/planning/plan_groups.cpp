// Names and sums for people, from the numbers of choices.
#include "analysis/planning/plan_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/planner/policy_form.h"

namespace tidemark {
namespace {

class Grouping {
 public:
  Grouping(const Planner& planner, const std::vector<Planner::Part>& parts)
      : planner_(planner), parts_(parts) {}

  std::vector<PlanGroup> run() const {
    std::vector<PlanGroup> groups;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (stage(p).block < 0 && keeps_all(p)) continue;
      if (p == 0 || groups.empty() || !continues(p)) groups.push_back(begun(p));
      add(p, groups.back());
    }
    return groups;
  }

 private:
  const Stage& stage(std::size_t p) const { return *parts_[p].stage; }
  const LocalPlan& local(std::size_t p) const { return parts_[p].entry->plan; }
  const Trace& trace(std::size_t p) const { return planner_.trace_of(parts_[p]); }
  bool keeps_all(std::size_t p) const {
    const auto is_kept = [](const Form& form) { return form.action == Action::Keep; };
    return !local(p).offloads_read_again && std::ranges::all_of(local(p).inputs, is_kept) &&
           std::ranges::all_of(local(p).forms, is_kept);
  }

  std::vector<TensorId> inputs_of(std::size_t p, Action action, int bits) const {
    if (action == Action::Offload)
      return bits == 0 ? offloaded_inputs(stage(p), local(p)) : std::vector<TensorId>();
    std::vector<TensorId> inputs;
    for (std::size_t k = 0; k < stage(p).inputs.size(); ++k)
      if (is_so(local(p).inputs[k], action, bits)) inputs.push_back(stage(p).inputs[k]);
    return inputs;
  }

  bool continues(std::size_t p) const {
    return stage(p).block >= 0 && stage(p - 1).block >= 0 &&
           parts_[p].count == parts_[p - 1].count &&
           parts_[p].operators == parts_[p - 1].operators && decided(p) == decided(p - 1) &&
           calls(p) == calls(p - 1);
  }

  struct Names {
    Action action;
    int bits;
    std::vector<std::string> names;

    bool operator==(const Names&) const = default;
  };

  // By what is decided, the names of tensors within the block, each once.
  std::vector<Names> decided(std::size_t p) const {
    std::vector<Names> found;
    for (const Named<Action>& action : actions)
      for (const int bits : {0, 8, 4, 2}) {
        Names each{action.value, bits, {}};
        if (action.value != Action::Keep && !inputs_of(p, action.value, bits).empty())
          each.names.emplace_back(action.value == Action::Reconstruct ? "the block's inputs"
                                                                      : "the block's input");
        for (std::size_t d = 0; d < stage(p).decided.size(); ++d) {
          if (action.value == Action::Keep || !is_so(local(p).forms[d], each.action, bits))
            continue;
          std::string name = name_within(p, stage(p).decided[d]);
          if (std::ranges::find(each.names, name) == each.names.end())
            each.names.push_back(std::move(name));
        }
        if (!each.names.empty()) found.push_back(std::move(each));
      }
    return found;
  }

  // All codes of a plan are, or none.
  bool is_delayed(std::size_t p) const {
    const auto is_by_last_step = [](const Form& form) { return form.encoding.delayed; };
    return std::ranges::any_of(local(p).inputs, is_by_last_step) ||
           std::ranges::any_of(local(p).forms, is_by_last_step);
  }

  static bool is_so(const Form& form, Action action, int bits) {
    return form.action == action && (action == Action::Quantize ? form.encoding.bits : 0) == bits;
  }

  // Ops whose outputs stay where all else of the block runs again.
  std::vector<std::string> calls(std::size_t p) const {
    std::vector<std::string> names;
    if (stage(p).block < 0) return names;
    for (const OpId op : saved_ops(trace(p), stage(p), local(p)))
      names.push_back(name_within(p, trace(p)[op].name));
    return names;
  }

  std::string name_within(std::size_t p, TensorId tensor) const {
    return name_within(p, trace(p)[tensor].name);
  }

  std::string name_within(std::size_t p, const std::string& name) const {
    if (stage(p).block < 0) return name;
    const std::uint32_t first = parts_[p].first;
    for (std::size_t s = first; s < first + parts_[p].count; ++s)
      if (is_of(name, s)) return name.substr(name_of_block(s).size() + 1);
    // A cast of what the block before made, called after it.
    if (first > 0 && planner_.stages().all[first - 1].block >= 0 && is_of(name, first - 1))
      return fmt::format("../{}", name.substr(name_of_block(first - 1).size() + 1));
    return name;
  }

  bool is_of(const std::string& name, std::size_t s) const {
    return name.starts_with(name_of_block(s) + ".");
  }

  Name name_of_block(std::size_t s) const {
    const Stage& single = planner_.stages().all[s];
    return planner_.trace().blocks[static_cast<std::size_t>(single.block)].name;
  }

  PlanGroup begun(std::size_t p) const {
    PlanGroup group;
    group.is_block = stage(p).block >= 0;
    group.first =
        group.is_block ? name_of_block(parts_[p].first) : planner_.trace()[stage(p).begin].name;
    group.joined = parts_[p].count;
    for (auto& [action, bits, names] : decided(p))
      group.decided.push_back({action, bits, bits > 0 && is_delayed(p), std::move(names), {}});
    group.calls = calls(p);
    for (const auto& component : planner_.operators_of(parts_[p]))
      group.operators.emplace_back(component.row->name);
    return group;
  }

  void add(std::size_t p, PlanGroup& group) const {
    const Planner::Part& part = parts_[p];
    group.last = group.is_block ? name_of_block(part.first + part.count - 1)
                                : planner_.trace().ops[index(stage(p).end) - 1].name;
    group.stages += part.count;
    const std::int64_t times = planner_.kept_at_once(part.first);
    const auto all = [&](std::int64_t bytes) { return Bytes{times * bytes}; };
    for (PlanGroup::Decided& decided : group.decided)
      for (std::size_t d = 0; d < stage(p).decided.size(); ++d)
        if (is_so(local(p).forms[d], decided.action, decided.bits))
          decided.bytes += all(size(trace(p)[stage(p).decided[d]]).count);
    for (PlanGroup::Decided& decided : group.decided)
      for (const TensorId input : inputs_of(p, decided.action, decided.bits))
        decided.bytes += all(size(trace(p)[input]).count);
    group.saved -= all(part.entry->cost.first.kept);
    group.extra += Nanoseconds(part.entry->cost.load[Resource::Time]);
    group.error += planner_.error_of(part);
    for (std::size_t s = part.first; s < part.first + part.count; ++s) {
      group.saved += all(planner_.kept_cost(s).first.kept);
      group.extra -= Nanoseconds(planner_.kept_cost(s).load[Resource::Time]);
    }
  }

  const Planner& planner_;
  const std::vector<Planner::Part>& parts_;
};

}  // namespace

std::string action_text(const PlanGroup::Decided& decided) {
  if (decided.bits == 0) return std::string(to_string(decided.action));
  return fmt::format("{}, {} bits{}", to_string(decided.action), decided.bits,
                     decided.delayed ? ", delayed" : "");
}

std::vector<PlanGroup> groups_of(const Planner& planner, const std::vector<Planner::Part>& parts) {
  return Grouping(planner, parts).run();
}

std::string binding_of(const Planner& planner, const std::vector<Planner::Part>& parts) {
  const Planner::Tightest found = planner.tightest(parts);
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
