#include "simulator/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/arena.h"
#include "simulator/lower.h"
#include "simulator/simulate.h"

namespace tidemark {
namespace {

// Large enough that nothing is released or refused: what the peak would be.
constexpr Bytes unlimited{std::int64_t{1} << 59};

// The run that writes the buffer whose arrival made the peak.
std::string describe_peak(const Trace& trace, const Schedule& schedule, const Timeline& timeline,
                          const Peak& peak) {
  if (peak.event >= timeline.memory.size()) return "before the step";
  const BufferId buffer = timeline.memory[peak.event].buffer;
  for (const Step& step : schedule.steps) {
    const Run* run = std::get_if<Run>(&step);
    if (!run) continue;
    const auto writes = schedule.writes(*run);
    if (std::ranges::find(writes, buffer) == writes.end()) continue;
    if (run->op == no_op) return std::string(to_string(run->task));
    return fmt::format("{} of {}", to_string(run->task), trace[run->op].name);
  }
  return "between two runs";
}

std::string cautions_of(const StrategySpec& strategy) {
  std::string text;
  for (const auto& component : strategy.components) {
    if (component.row->caution.empty()) continue;
    if (!text.empty()) text += "; ";
    text += component.row->caution;
  }
  return text;
}

bool recovers(const Step& step) {
  const Run* run = std::get_if<Run>(&step);
  return run && (run->task == Task::Recompute || run->task == Task::Reconstruct);
}

void add_time(const Trace& trace, const Answer& answer, const Device& device, Report& report) {
  const Timeline& timeline = answer.timeline;
  report.step = timeline.duration;
  report.samples_per_second = static_cast<double>(trace.step.batch) * 1e9 /
                              static_cast<double>(std::max<std::int64_t>(1, report.step.count()));
  report.overlap = timeline.overlap;
  report.launch_bound = timeline.waits_for_host > timeline.duration / 10;
  if (answer.planned.plan.regions.empty()) return;
  const CostModel costs(*answer.planned.trace, device);
  Nanoseconds alone{}, busy = timeline.duration - timeline.idle;
  for (const TimedRun& run : timeline.runs) {
    const Step& step = answer.schedule.steps[run.step];
    if (!std::holds_alternative<Run>(step)) continue;
    const Nanoseconds time = costs.of(answer.schedule, std::get<Run>(step)).time;
    alone += time;
    if (recovers(step)) report.recompute += time;
  }
  if (answer.schedule.streams > 1)
    report.hidden_recompute = std::clamp(alone - busy, Nanoseconds{0}, report.recompute);
}

void add_allocator(const Trace& trace, const Schedule& schedule, const Device& device,
                   const Room& room, Report& report) {
  const Framework& framework = find_framework(trace.step.framework);
  AllocatorResult result =
      replay_allocator(schedule, framework, device, room.allocator, room.capacity);
  report.capacity = room.capacity;
  report.fits = !result.out_of_memory;
  report.allocator_retries = result.retries;
  if (result.out_of_memory)
    result = replay_allocator(schedule, framework, device, room.allocator, unlimited);
  report.allocated_peak = result.allocated_peak;
  report.reserved_peak = result.reserved_peak;
  if (!report.fits) report.short_by = std::max(Bytes{0}, result.allocated_peak - room.capacity);
}

}  // namespace

Answer answer(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
              const Device& device, const Room& room) {
  Answer result{plan_step(std::move(trace), strategy), {}, {}, {}};
  Report& report = result.report;
  report.strategy = strategy.text;
  report.reason = result.planned.refusal;
  report.applies = report.reason.empty();
  report.caution = cautions_of(strategy);
  if (!report.applies) return result;
  const Trace& planned = *result.planned.trace;
  result.schedule = lower(planned, result.planned.plan);
  result.timeline = simulate(planned, result.schedule, device);
  const Peak top = peak(result.schedule, result.timeline);
  report.live_peak = top.bytes;
  report.at_peak = top.by_category;
  report.peak_at = describe_peak(planned, result.schedule, result.timeline, top);
  report.planned = plan_arena(result.schedule).size;
  report.saved = saved_bytes(planned, result.planned.plan);
  report.units = block_units(planned, result.planned.plan);
  add_allocator(planned, result.schedule, device, room, report);
  add_time(planned, result, device, report);
  return result;
}

bool fits(std::shared_ptr<const Trace> trace, const StrategySpec& strategy, const Device& device,
          const Room& room) {
  const PlannedStep planned = plan_step(std::move(trace), strategy);
  if (!planned.refusal.empty()) return false;
  const Schedule schedule = lower(*planned.trace, planned.plan);
  const Framework& framework = find_framework(planned.trace->step.framework);
  return !replay_allocator(schedule, framework, device, room.allocator, room.capacity)
              .out_of_memory;
}

}  // namespace tidemark
