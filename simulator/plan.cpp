// The plan that keeps everything, decisions with reasons, and the check of a plan for a trace.
#include "simulator/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/graph/recovery.h"

namespace tidemark {

Plan keep_everything(const Trace& trace) {
  Plan plan;
  plan.actions.assign(trace.tensors.size(), Action::Keep);
  plan.reason_of.assign(trace.tensors.size(), 0);
  plan.reasons = {std::string(usual_reason)};
  return plan;
}

void decide(Plan& plan, TensorId tensor, Action action, std::string_view reason) {
  plan.actions[index(tensor)] = action;
  auto found = std::ranges::find(plan.reasons, reason);
  if (found == plan.reasons.end()) found = plan.reasons.emplace(found, reason);
  plan.reason_of[index(tensor)] = static_cast<std::uint16_t>(found - plan.reasons.begin());
}

namespace {

void check_sizes(const Trace& trace, const Plan& plan, std::vector<std::string>& defects) {
  if (plan.actions.size() != trace.tensors.size() || plan.reason_of.size() != trace.tensors.size())
    defects.push_back(fmt::format("the plan is for {} tensors, the trace has {}",
                                  plan.actions.size(), trace.tensors.size()));
  for (const auto* ops :
       {&plan.left_by, &plan.fetched_at, &plan.value_release_after, &plan.gradient_release_after})
    if (!ops->empty() && ops->size() != trace.tensors.size())
      defects.push_back("a list of ops by tensor has another size than the trace's tensors");
  for (const std::string& reason : plan.reasons)
    if (reason.empty()) defects.push_back("a reason is empty");
  for (const std::uint16_t reason : plan.reason_of)
    if (reason >= plan.reasons.size()) return defects.push_back("a reason is out of range");
}

void check_regions(const Trace& trace, const Plan& plan, std::vector<std::string>& defects) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    const Region& region = plan.regions[i];
    if (index(region.begin) < end || region.split < region.begin || region.end <= region.begin ||
        region.end < region.split || index(region.end) > trace.ops.size())
      defects.push_back(fmt::format("region {} [{}, {}, {}) is empty, out of order or out of range",
                                    i, index(region.begin), index(region.split),
                                    index(region.end)));
    end = index(region.end);
  }
}

void check_copies(const Trace& trace, const Plan& plan, std::vector<std::string>& defects) {
  for (const auto* ops : {&plan.left_by, &plan.fetched_at})
    for (std::size_t t = 0; t < ops->size(); ++t)
      if ((*ops)[t] != no_op && index((*ops)[t]) >= trace.ops.size())
        defects.push_back(fmt::format("'{}' is copied at op {}; the trace has {}",
                                      trace.tensors[t].name, index((*ops)[t]), trace.ops.size()));
}

void check_actions(const Trace& trace, const Plan& plan, const Needs& needs,
                   std::vector<std::string>& defects) {
  const std::vector<OpId> overwritten = overwriters(trace);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Action action = plan.actions[t];
    const Tensor& tensor = trace.tensors[t];
    if (action == Action::Keep) continue;
    if (needs.producer[t] == no_op)
      defects.push_back(
          fmt::format("'{}' is {}, but no op of the step writes it: only its own "
                      "memory can provide it",
                      tensor.name, to_string(action)));
    if (overwritten[t] != no_op && (action == Action::Recompute || action == Action::Reconstruct))
      defects.push_back(fmt::format(
          "'{}' is {}, but '{}' works in place on it: keep it, for nothing brings back what was "
          "written over",
          tensor.name, to_string(action), trace[overwritten[t]].name));
    const OpId producer = needs.producer[t];
    if (action == Action::Recompute && producer != no_op && runs_once(trace, trace[producer]))
      defects.push_back(fmt::format("'{}' is recompute, but '{}' may run only once: keep it",
                                    tensor.name, trace[producer].name));
    if (action == Action::Quantize && !is_floating(tensor.dtype))
      defects.push_back(fmt::format("'{}' is quantize, but its dtype is {}", tensor.name,
                                    to_string(tensor.dtype)));
  }
}

}  // namespace

std::vector<std::string> check(const Trace& trace, const Plan& plan) {
  std::vector<std::string> defects;
  check_sizes(trace, plan, defects);
  if (!defects.empty()) return defects;
  check_regions(trace, plan, defects);
  check_copies(trace, plan, defects);
  if (!defects.empty()) return defects;
  const Needs needs = derive_needs(trace);
  check_actions(trace, plan, needs, defects);
  if (!defects.empty()) return defects;
  return derive_recovery(trace, plan, needs).defects;
}

}  // namespace tidemark
