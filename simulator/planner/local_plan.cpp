// From decisions about a whole trace to those about a stage, and back.
#include "simulator/planner/local_plan.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr std::string_view reason_of(Action action) {
  switch (action) {
    case Action::Recompute:
      return "planned: made again is the cheapest way to this budget";
    case Action::Quantize:
      return "planned: codes are the cheapest way to this budget";
    case Action::Offload:
      return "planned: a copy in the host's memory is the cheapest way to this budget";
    case Action::Keep:
    case Action::Reconstruct:
      break;
  }
  return usual_reason;
}

void apply(const Stage& stage, const LocalPlan& local, Plan& plan) {
  for (std::size_t i = 0; i < stage.decided.size(); ++i) {
    const Form& form = local.forms[i];
    if (form.action == Action::Quantize)
      quantize(plan, stage.decided[i], form.encoding, reason_of(form.action));
    else if (form.action != Action::Keep)
      decide(plan, stage.decided[i], form.action, reason_of(form.action));
  }
  // A chain of its own each: without overlap that changes nothing.
  for (const LocalRegion& region : local.regions) {
    const auto begin = static_cast<OpId>(index(stage.begin) + region.begin);
    plan.regions.push_back({begin, begin, static_cast<OpId>(index(stage.begin) + region.end),
                            static_cast<std::int32_t>(plan.regions.size())});
  }
}

// By tensor: is it one of the stage's decided?
std::vector<bool> mark_decided(const Trace& trace, const Stage& stage) {
  std::vector<bool> decided(trace.tensors.size());
  for (const TensorId storage : stage.decided) decided[index(storage)] = true;
  return decided;
}

bool decides_elsewhere(const Trace& trace, const Plan& plan, const Stage& stage) {
  const std::vector<bool> decided = mark_decided(trace, stage);
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (!decided[index(output)] && plan.decisions[index(output)].action != Action::Keep)
        return true;
  return false;
}

}  // namespace

LocalPlan keep_all(const Stage& stage) { return {std::vector<Form>(stage.decided.size()), {}}; }

std::optional<LocalPlan> local_plan_of(const Trace& trace, const Plan& plan, const Stage& stage) {
  if (decides_elsewhere(trace, plan, stage)) return std::nullopt;
  LocalPlan local;
  for (const TensorId storage : stage.decided) {
    const Decision& decision = plan.decisions[index(storage)];
    if (decision.action == Action::Offload || decision.action == Action::Reconstruct)
      return std::nullopt;
    local.forms.push_back({decision.action, {}});
    if (decision.action == Action::Quantize)
      local.forms.back().encoding = encoding_of(plan, storage);
  }
  for (const Region& region : plan.regions) {
    if (region.end <= stage.begin || region.begin >= stage.end) continue;
    if (region.begin < stage.begin || region.end > stage.end) return std::nullopt;
    if (region.split != region.begin) return std::nullopt;
    local.regions.push_back(
        {index(region.begin) - index(stage.begin), index(region.end) - index(stage.begin)});
  }
  return local;
}

Plan assembled(const Trace& trace, const Stages& stages,
               const std::vector<const LocalPlan*>& locals) {
  Plan plan = keep_everything(trace);
  for (std::size_t s = 0; s < stages.all.size(); ++s) apply(stages.all[s], *locals[s], plan);
  return plan;
}

}  // namespace tidemark
