// From decisions about a whole trace to those about a stage, and back.
#include "simulator/planner/local_plan.h"

#include <algorithm>

#include "simulator/planner/survey.h"
#include "simulator/strategies/least_offloaded.h"

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
    case Action::Reconstruct:
      return "planned: recovered from what the block made of it";
    case Action::Keep:
      break;
  }
  return usual_reason;
}

// By tensor: is it one of the stage's decided?
std::vector<bool> mark_decided(const Trace& trace, const Stage& stage) {
  std::vector<bool> decided(trace.tensors.size());
  for (const TensorId storage : stage.decided) decided[index(storage)] = true;
  return decided;
}

// Of what is not among the stage's decided: what is made again although no gradient needs it.
// Nothing where the plan decides anything else about it.
std::optional<std::vector<LocalValue>> made_again(const Trace& trace, const Needs& needs,
                                                  const Plan& plan, const Stage& stage) {
  const std::vector<bool> decided = mark_decided(trace, stage);
  std::vector<LocalValue> values;
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    const auto outputs = trace.outputs(trace.ops[i]);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const std::size_t output = index(outputs[k]);
      const Action action = plan.decisions[output].action;
      if (decided[output] || action == Action::Keep) continue;
      // The input of a later stage.
      const bool is_later =
          needs.last_read[output] != no_op && needs.last_read[output] >= stage.end;
      if ((action == Action::Reconstruct || action == Action::Quantize) && is_later) continue;
      if (action != Action::Recompute || needs.uses[output] > 0) return std::nullopt;
      values.push_back({i - index(stage.begin), k});
    }
  }
  return values;
}

}  // namespace

LocalPlan keep_all(const Stage& stage) {
  return {.forms = std::vector<Form>(stage.decided.size()),
          .regions = {},
          .inputs = std::vector<Form>(stage.inputs.size())};
}

bool reconstructs_inputs(const LocalPlan& local) {
  return std::ranges::find(local.inputs, Action::Reconstruct, &Form::action) != local.inputs.end();
}

namespace {

Form form_of(const Plan& plan, TensorId storage) {
  const Action action = plan.decisions[index(storage)].action;
  return {action, action == Action::Quantize ? encoding_of(plan, storage) : Encoding{}};
}

std::vector<Form> forms_of(const Plan& plan, const std::vector<TensorId>& storages) {
  std::vector<Form> forms;
  for (const TensorId storage : storages) forms.push_back(form_of(plan, storage));
  return forms;
}

// Is what becomes of the storages for the stage alone to say?
bool are_local(const Stage& stage, const LocalPlan& local) {
  std::size_t reconstructed = 0;
  for (const Form& form : local.forms)
    if (form.action == Action::Offload || form.action == Action::Reconstruct) return false;
  for (std::size_t k = 0; k < stage.inputs.size(); ++k) {
    const Action action = local.inputs[k].action;
    if (action == Action::Offload || action == Action::Recompute) return false;
    if (action == Action::Quantize && !stage.needed_here[k]) return false;
    reconstructed += action == Action::Reconstruct;
  }
  return reconstructed == 0 || reconstructed == stage.inputs.size();
}

bool has_region_across(const Plan& plan, const Stage& stage) {
  return std::ranges::any_of(plan.regions, [&](const Region& region) {
    const bool is_met = region.end > stage.begin && region.begin < stage.end;
    return is_met && (region.begin < stage.begin || region.end > stage.end);
  });
}

}  // namespace

LocalPlan described(const Trace& trace, const Plan& plan, const Stage& stage) {
  LocalPlan local = as_offloaded_by(plan, stage,
                                    {.forms = forms_of(plan, stage.decided),
                                     .regions = {},
                                     .inputs = forms_of(plan, stage.inputs)});
  for (const Region& region : plan.regions) {
    const OpId begin = std::max(region.begin, stage.begin), end = std::min(region.end, stage.end);
    if (begin >= end) continue;
    const OpId split = std::clamp(region.split, begin, end);
    local.regions.push_back({.begin = index(begin) - index(stage.begin),
                             .end = index(end) - index(stage.begin),
                             .first_half = index(split) - index(begin)});
  }
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    const auto outputs = trace.outputs(trace.ops[i]);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (is_kept_for_recovery(plan, outputs[k]))
        local.kept_for_recovery.push_back({i - index(stage.begin), k});
  }
  return local;
}

std::optional<LocalPlan> local_plan_of(const Trace& trace, const Needs& needs, const Plan& plan,
                                       const Stage& stage) {
  if (has_region_across(plan, stage)) return std::nullopt;
  std::optional<std::vector<LocalValue>> others = made_again(trace, needs, plan, stage);
  if (!others) return std::nullopt;
  LocalPlan local = described(trace, plan, stage);
  if (!are_local(stage, local)) return std::nullopt;
  local.made_again = std::move(*others);
  return local;
}

std::int64_t decided_bytes(const Trace& trace, const Stage& stage) {
  std::int64_t bytes = 0;
  for (const TensorId storage : stage.decided) bytes += rounded(size(trace[storage]));
  return bytes;
}

std::vector<TensorId> offloaded_inputs(const Stage& stage, const LocalPlan& local) {
  std::vector<TensorId> inputs;
  for (std::size_t k = 0; k < stage.inputs.size(); ++k)
    if (local.inputs[k].action == Action::Offload) inputs.push_back(stage.inputs[k]);
  if (local.offloads_read_again)
    inputs.insert(inputs.end(), stage.read_again.begin(), stage.read_again.end());
  return inputs;
}

std::int64_t offloaded_bytes(const Trace& trace, const Stage& stage, const LocalPlan& local) {
  std::int64_t bytes = 0;
  for (std::size_t d = 0; d < stage.decided.size(); ++d)
    if (local.forms[d].action == Action::Offload) bytes += rounded(size(trace[stage.decided[d]]));
  for (const TensorId input : offloaded_inputs(stage, local)) bytes += rounded(size(trace[input]));
  return bytes;
}

// What is held frees no memory when it leaves; of values that reruns alone read, all leave or none.
std::vector<TensorId> that_may_leave(const Trace& trace, const Stage& stage,
                                     const LocalPlan& local) {
  std::vector<TensorId> found;
  for (std::size_t d = 0; d < stage.decided.size(); ++d)
    if (local.forms[d].action == Action::Keep && !stage.held[d]) found.push_back(stage.decided[d]);
  for (std::size_t k = 0; k < stage.inputs.size(); ++k)
    if (local.inputs[k].action == Action::Keep) found.push_back(stage.inputs[k]);
  if (stage.read_again.size() == 1) found.push_back(stage.read_again.front());
  std::erase_if(found, [&](TensorId storage) { return size(trace[storage]) < least_planned; });
  return found;
}

LocalPlan as_offloaded_by(const Plan& plan, const Stage& stage, LocalPlan local) {
  const auto is_offloaded = [&](TensorId storage) {
    return plan.decisions[index(storage)].action == Action::Offload;
  };
  for (std::size_t d = 0; d < stage.decided.size(); ++d)
    if (is_offloaded(stage.decided[d])) local.forms[d].action = Action::Offload;
  for (std::size_t k = 0; k < stage.inputs.size(); ++k)
    if (is_offloaded(stage.inputs[k])) local.inputs[k].action = Action::Offload;
  local.offloads_read_again =
      !stage.read_again.empty() && std::ranges::all_of(stage.read_again, is_offloaded);
  return local;
}

void offload(TensorId storage, OpId left_by, OpId fetched_at, Plan& plan) {
  decide(plan, storage, Action::Offload, reason_of(Action::Offload));
  plan.left_by.resize(plan.decisions.size(), no_op);
  plan.fetched_at.resize(plan.decisions.size(), no_op);
  plan.left_by[index(storage)] = left_by;
  plan.fetched_at[index(storage)] = fetched_at;
}

void apply(const Trace& trace, const Stage& stage, const LocalPlan& local, Plan& plan) {
  const auto take = [&](TensorId storage, const Form& form) {
    if (form.action == Action::Quantize)
      quantize(plan, storage, form.encoding, reason_of(form.action));
    else if (form.action == Action::Offload)
      offload(storage, stage.left_by, stage.fetched_at, plan);
    else if (form.action != Action::Keep)
      decide(plan, storage, form.action, reason_of(form.action));
  };
  for (std::size_t d = 0; d < stage.decided.size(); ++d) take(stage.decided[d], local.forms[d]);
  for (std::size_t k = 0; k < stage.inputs.size(); ++k) take(stage.inputs[k], local.inputs[k]);
  if (local.offloads_read_again)
    for (const TensorId input : stage.read_again)
      offload(input, stage.left_by, stage.fetched_at, plan);
  for (const LocalValue& value : local.kept_for_recovery)
    keep_for_recovery(plan, trace.outputs(trace.ops[index(stage.begin) + value.op])[value.output]);
  for (const LocalValue& value : local.made_again)
    decide(plan, trace.outputs(trace.ops[index(stage.begin) + value.op])[value.output],
           Action::Recompute, "planned: made again with all else of its block");
  // A chain of its own each: without overlap that changes nothing.
  for (const LocalRegion& region : local.regions) {
    const auto begin = static_cast<OpId>(index(stage.begin) + region.begin);
    plan.regions.push_back({begin, static_cast<OpId>(index(begin) + region.first_half),
                            static_cast<OpId>(index(stage.begin) + region.end),
                            static_cast<std::int32_t>(plan.regions.size())});
  }
}

void recover_beside_gradients(Plan& plan) {
  plan.overlap = plan.regions.size() > 1;  // the first has nothing to run beside
  for (Region& region : plan.regions) region.chain = 0;
}

Plan assembled(const Trace& trace, const Stages& stages,
               const std::vector<const LocalPlan*>& locals) {
  Plan plan = keep_everything(trace);
  for (std::size_t s = 0; s < stages.all.size(); ++s) apply(trace, stages.all[s], *locals[s], plan);
  return plan;
}

}  // namespace tidemark
