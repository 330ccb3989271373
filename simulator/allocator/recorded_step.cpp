// Numbers of allocations become slots.
#include "simulator/allocator/recorded_step.h"

#include <algorithm>
#include <utility>

#include "simulator/kernel_choice.h"

namespace tidemark::allocator {
namespace {

bool keeps_everything(const Plan& plan) {
  return plan.regions.empty() && !plan.overlap && plan.left_by.empty() &&
         plan.value_release_after.empty() && plan.gradient_release_after.empty() &&
         plan.quirks == ReferenceQuirks{} &&
         std::ranges::all_of(plan.decisions, [](const Decision& decision) {
           return decision.action == Action::Keep;
         });
}

constexpr int usual_capability = 80;  // of a step that names none

class Numbering {
 public:
  std::vector<AllocatorCall> listed(const std::vector<std::int64_t>& recorded) {
    std::vector<AllocatorCall> calls;
    calls.reserve(recorded.size());
    for (const std::int64_t call : recorded)
      if (call > 0) {
        calls.push_back(
            {.size = Bytes{call}, .slot = next_++, .kind = AllocatorCall::Kind::Allocate});
      } else {
        const auto slot = static_cast<std::uint32_t>(next_ + call);
        calls.push_back({.slot = slot, .kind = AllocatorCall::Kind::Free});
      }
    return calls;
  }
  std::size_t count() const { return next_; }

 private:
  std::uint32_t next_ = 0;
};

AllocatorCalls listed(const RecordedCalls& recorded) {
  Numbering numbering;
  AllocatorCalls calls;
  calls.before = numbering.listed(recorded.setup);
  const std::vector<AllocatorCall> first = numbering.listed(recorded.first_step);
  calls.before.insert(calls.before.end(), first.begin(), first.end());
  calls.step = numbering.listed(recorded.step);
  calls.work = recorded.work;
  calls.slots = numbering.count();
  calls.times = 1;
  return calls;
}

}  // namespace

bool was_recorded(const Trace& trace, const Device& device) {
  if (!trace.calls || trace.calls->of != trace.step) return false;
  return capability_of(device) ==
         static_cast<int>(trace.step.capability.value_or(usual_capability));
}

bool was_recorded(const PlannedStep& step, const Device& device) {
  return was_recorded(*step.trace, device) && step.refusal.empty() && step.rewrites.empty() &&
         keeps_everything(step.plan);
}

AllocatorCalls calls_of(const PlannedStep& step, const Schedule& schedule, const Device& device) {
  if (was_recorded(step, device)) return listed(*step.trace->calls);
  return calls_of(*step.trace, schedule, find_framework(step.trace->step.framework), device);
}

}  // namespace tidemark::allocator
