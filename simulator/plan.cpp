// The plan that keeps everything, decisions with reasons, and the check of a plan for a trace.
#include "simulator/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/derived.h"

namespace tidemark {

Plan keep_everything(const Trace& trace) {
  Plan plan;
  plan.decisions.resize(trace.tensors.size());
  plan.reasons = {std::string(usual_reason)};
  plan.encodings = {Encoding()};
  return plan;
}

namespace {

/// Where the value stands in the list, at its end if it is new.
template <typename Value, typename As>
std::uint16_t place_in(std::vector<Value>& list, const As& value) {
  auto found = std::ranges::find(list, value);
  if (found == list.end()) found = list.emplace(found, value);
  return static_cast<std::uint16_t>(found - list.begin());
}

}  // namespace

void decide(Plan& plan, TensorId tensor, Action action, std::string_view reason) {
  plan.decisions[index(tensor)] = {action, place_in(plan.reasons, reason), 0};
}

void quantize(Plan& plan, TensorId tensor, const Encoding& encoding, std::string_view reason) {
  decide(plan, tensor, Action::Quantize, reason);
  plan.decisions[index(tensor)].encoding = place_in(plan.encodings, encoding);
}

void keep_for_recovery(Plan& plan, TensorId tensor) {
  plan.kept_for_recovery.resize(plan.decisions.size());
  plan.kept_for_recovery[index(tensor)] = true;
}

std::size_t region_of(const Plan& plan, OpId op) {
  const auto behind = std::ranges::upper_bound(plan.regions, op, {}, &Region::begin);
  if (behind == plan.regions.begin() || std::prev(behind)->end <= op) return plan.regions.size();
  return static_cast<std::size_t>(behind - plan.regions.begin()) - 1;
}

int fewest_bits(const Plan& plan) {
  int bits = 0;
  for (const Decision& decision : plan.decisions)
    if (decision.action == Action::Quantize) {
      const int own = plan.encodings[decision.encoding].bits;
      bits = bits == 0 ? own : std::min(bits, own);
    }
  return bits;
}

namespace {

void check_sizes(const Trace& trace, const Plan& plan, std::vector<std::string>& defects) {
  if (plan.decisions.size() != trace.tensors.size())
    defects.push_back(fmt::format("the plan is for {} tensors, the trace has {}",
                                  plan.decisions.size(), trace.tensors.size()));
  for (const auto* ops :
       {&plan.left_by, &plan.fetched_at, &plan.value_release_after, &plan.gradient_release_after})
    if (!ops->empty() && ops->size() != trace.tensors.size())
      defects.emplace_back("a list of ops by tensor has another size than the trace's tensors");
  if (!plan.kept_for_recovery.empty() && plan.kept_for_recovery.size() != trace.tensors.size())
    defects.emplace_back(
        "the list of what is kept for recovery has another size than the tensors'");
  if (!plan.rerun_after.empty() && plan.rerun_after.size() != trace.ops.size())
    defects.emplace_back("the list of what reruns wait for has another size than the trace's ops");
  if (plan.lanes < least_lanes || plan.lanes > most_lanes)
    defects.push_back(fmt::format("regions take {} lanes in turn; need {} to {}", plan.lanes,
                                  least_lanes, most_lanes));
  for (const std::string& reason : plan.reasons)
    if (reason.empty()) defects.emplace_back("a reason is empty");
  for (const Decision& decision : plan.decisions) {
    if (decision.reason >= plan.reasons.size())
      return void(defects.emplace_back("a reason is out of range"));
    if (decision.encoding >= plan.encodings.size())
      return void(defects.emplace_back("an encoding is out of range"));
  }
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

// What a rerun waits for is issued before it.
void check_waits(const Trace& trace, const Plan& plan, const Recovery& recovery,
                 std::vector<std::string>& defects) {
  for (std::size_t i = 0; i < plan.rerun_after.size(); ++i) {
    const OpId after = plan.rerun_after[i];
    if (after == no_op) continue;
    const std::size_t region = region_of(plan, static_cast<OpId>(i));
    if (!recovery.reruns[i])
      defects.push_back(fmt::format("'{}' does not run again: there is nothing that could wait",
                                    trace.ops[i].name));
    else if (index(after) >= trace.ops.size() || after < plan.regions[region].end)
      defects.push_back(fmt::format(
          "'{}' is to run again after the gradients of an op that is not behind its region",
          trace.ops[i].name));
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
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Action action = plan.decisions[t].action;
    const Tensor& tensor = trace.tensors[t];
    if (action == Action::Keep) continue;
    if (needs.producer[t] == no_op)
      defects.push_back(
          fmt::format("'{}' is {}, but no op of the step writes it: only its own "
                      "memory can provide it",
                      tensor.name, to_string(action)));
    const OpId overwriter = needs.overwritten_by[t], maker = needs.producer[t];
    const bool is_lost = overwriter != no_op && (maker == no_op || needs.runs_once[index(maker)]);
    if (is_lost && (action == Action::Recompute || action == Action::Reconstruct))
      defects.push_back(fmt::format(
          "'{}' is {}, but '{}' works in place on it: keep it, for nothing brings back what was "
          "written over",
          tensor.name, to_string(action), trace[overwriter].name));
    const OpId producer = needs.producer[t];
    if (action == Action::Recompute && producer != no_op && runs_once(trace, trace[producer]))
      defects.push_back(fmt::format("'{}' is recompute, but '{}' may run only once: keep it",
                                    tensor.name, trace[producer].name));
    if (action != Action::Quantize) continue;
    if (!is_floating(tensor.dtype))
      defects.push_back(fmt::format("'{}' is quantize, but its dtype is {}", tensor.name,
                                    to_string(tensor.dtype)));
    if (const std::string why = misfit(encoding_of(plan, static_cast<TensorId>(t)), tensor.shape);
        !why.empty())
      defects.push_back(fmt::format("'{}' is quantize, but {}", tensor.name, why));
  }
}

}  // namespace

std::vector<std::string> check(const Trace& trace, const Plan& plan) {
  Derived derived{.needs = derive_needs(trace), .recovery = {}};
  return check(trace, plan, derived);
}

std::vector<std::string> check(const Trace& trace, const Plan& plan, Derived& derived) {
  std::vector<std::string> defects;
  check_sizes(trace, plan, defects);
  if (!defects.empty()) return defects;
  check_regions(trace, plan, defects);
  check_copies(trace, plan, defects);
  if (!defects.empty()) return defects;
  check_actions(trace, plan, derived.needs, defects);
  if (!defects.empty()) return defects;
  derived.recovery = derive_recovery(trace, plan, derived.needs);
  check_waits(trace, plan, derived.recovery, derived.recovery.defects);
  return derived.recovery.defects;
}

}  // namespace tidemark
