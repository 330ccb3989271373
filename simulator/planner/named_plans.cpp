// Plans of strategies that have names, looked at beside those that sums propose: made of local
// plans where stages can say what the strategy does, else as a whole.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/planner/planner.h"
#include "simulator/strategies/couplings.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

// Of strategies, what plans of this form may do on one stream.
std::vector<PlannedStep> Planner::named_steps() const {
  std::vector<std::string> texts = {"checkpoint:blocks"};
  if (settings_.form == PlanForm::Tensors)
    texts.insert(texts.end(), {"checkpoint", "checkpoint:sqrt", "checkpoint:selective"});
  for (const int bits : settings_.bits)
    for (const char* text :
         {"mesa:bits={}", "mesa:bits={}+checkpoint", "mesa:bits={}+checkpoint:blocks"})
      texts.push_back(fmt::format(fmt::runtime(text), bits));
  std::vector<PlannedStep> steps;
  const auto add = [&](PlannedStep step) {
    step.plan.strategy = {};
    const auto is_same = [&](const PlannedStep& other) { return other.plan == step.plan; };
    if (is_about(step) && std::ranges::none_of(steps, is_same)) steps.push_back(std::move(step));
  };
  for (const std::string& text : texts) add(plan_step(trace_, parse_strategy(text)));
  if (settings_.form != PlanForm::Tensors) return steps;
  if (settings_.known) add({trace_, *settings_.known, {}});
  if (settings_.undoes_couplings)
    for (Plan& plan : plans_of_couplings(*trace_, needs_)) add({trace_, std::move(plan), {}});
  return steps;
}

// Codes that are others than those which plans choose from: no bound knows what they cost, and what
// they make of gradients nobody has measured for these networks.
std::vector<PlannedStep> Planner::steps_with_other_codes() const {
  std::vector<PlannedStep> steps;
  if (settings_.form != PlanForm::Tensors || bounds_errors()) return steps;
  for (const int bits : settings_.bits)
    for (const char* text : {"mesa:delayed,bits={}", "mesa:delayed,bits={}+checkpoint",
                             "mesa:delayed,bits={}+checkpoint:blocks"})
      steps.push_back(plan_step(trace_, parse_strategy(fmt::format(fmt::runtime(text), bits))));
  return steps;
}

// Where adapters train, and in T5, checkpoints may ask for gradients of inputs: another trace.
bool Planner::is_about(const PlannedStep& step) const {
  return step.refusal.empty() && step.trace == trace_;
}

void Planner::add_named(std::size_t number, PlannedStep step, Described described) {
  if (!is_about(step)) return;
  step.plan.strategy.clear();
  std::optional<NamedPlan> named;
  if (described == Described::ByStages) named = made_of_local(number, step.plan);
  if (!named && is_in_flight(moments_)) return;  // what is there then, only sums know
  if (!named) named = described_whole(std::move(step.plan));
  measure(*named);
  GradientError error;
  for (const Part& part : parts_of(*named)) error += error_of(part);
  if (!bounds_errors() || error.square() <= settings_.most_error) keep(std::move(*named));
}

// Nothing if it decides about anything that no stage of the chain decides about by itself.
std::optional<Planner::NamedPlan> Planner::made_of_local(std::size_t number,
                                                         const Plan& plan) const {
  NamedPlan named{number, {}};
  for (const Stage& stage : chain(number).all) {
    std::optional<LocalPlan> local = local_plan_of(*trace_, needs_, plan, stage);
    if (!local) return std::nullopt;
    named.entries.push_back({std::move(*local), {}});
  }
  return named;
}

Planner::NamedPlan Planner::described_whole(Plan plan) const {
  NamedPlan named{0, {}};
  std::vector<std::size_t> stage_of;  // by op
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    stage_of.resize(index(stages_.all[s].end), s);
    named.entries.push_back({described(*trace_, plan, stages_.all[s]), {}});
  }
  for (std::size_t t = 0; t < plan.decisions.size(); ++t) {
    if (plan.decisions[t].action != Action::Offload) continue;
    const std::size_t s = stage_of[index(last_forward_use(needs_, static_cast<TensorId>(t)))];
    named.entries[s].offloaded += rounded(tidemark::size(trace_->tensors[t]));
  }
  named.whole = std::move(plan);
  return named;
}

void Planner::measure(NamedPlan& named) const {
  const Stages& stages = chain(named.chain);
  std::vector<const LocalPlan*> locals;
  for (const Entry& entry : named.entries) locals.push_back(&entry.plan);
  const Survey found = named.whole ? survey_of(stages, *named.whole) : survey_of(stages, locals);
  for (std::size_t s = 0; s < stages.all.size(); ++s) named.entries[s].cost = found.stages[s];
}

const Plan* Planner::whole_plan(std::size_t point) const {
  if (point < points_.size()) return nullptr;
  const std::optional<Plan>& whole = named_[point - points_.size()]->whole;
  return whole ? &*whole : nullptr;
}

// Once, whatever it is called.
void Planner::keep(NamedPlan named) {
  const auto is_same = [&](const std::shared_ptr<const NamedPlan>& other) {
    return other->chain == named.chain && other->whole == named.whole &&
           std::ranges::equal(other->entries, named.entries, {}, &Entry::plan, &Entry::plan);
  };
  if (std::ranges::none_of(named_, is_same))
    named_.push_back(std::make_shared<const NamedPlan>(std::move(named)));
}

std::vector<Planner::Part> Planner::parts_of(const NamedPlan& named) const {
  const Stages& stages = chain(named.chain);
  std::vector<Part> parts;
  std::uint32_t first = 0;
  for (std::size_t s = 0; s < stages.all.size(); ++s) {
    const bool is_joined = stages.all[s].end != stages_.all[first].end;
    const std::size_t count = is_joined ? joined_[named.chain - 1].length : 1;
    parts.push_back({&stages.all[s], first, static_cast<std::uint32_t>(count), &named.entries[s]});
    first += parts.back().count;
  }
  return parts;
}

}  // namespace tidemark
