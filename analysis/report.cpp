// Evaluates one strategy: plan, lower, simulate, then each number of the report in turn.
#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/host_copies.h"
#include "analysis/paged_states.h"
#include "analysis/report_totals.h"
#include "simulator/allocator/recorded_step.h"
#include "simulator/arena.h"
#include "simulator/cost/model_flops.h"
#include "simulator/graph/differentiate.h"
#include "simulator/kernel_choice.h"
#include "simulator/lower.h"
#include "simulator/place/place.h"
#include "simulator/simulate.h"

namespace tidemark {
namespace {

// The run that writes the buffer whose arrival made the peak, or null.
const Run* run_at_peak(const Schedule& schedule, const Timeline& timeline, const Peak& peak) {
  if (peak.event >= timeline.memory.size()) return nullptr;
  const BufferId buffer = timeline.memory[peak.event].buffer;
  for (const Step& step : schedule.steps) {
    const Run* run = std::get_if<Run>(&step);
    if (!run) continue;
    const auto writes = schedule.writes(*run);
    if (std::ranges::find(writes, buffer) != writes.end()) return run;
  }
  return nullptr;
}

std::string describe_peak(const Trace& trace, const Timeline& timeline, const Peak& peak,
                          const Run* run) {
  if (peak.event >= timeline.memory.size()) return "before the step";
  if (!run) return "between two runs";
  if (run->op == no_op) return std::string(to_string(run->task));
  return fmt::format("{} of {}", to_string(run->task), trace[run->op].name);
}

// By tensor: does the head or the loss make it? They begin with the last matrix product, if that
// lies behind the blocks.
std::vector<bool> made_by_loss(const Trace& trace) {
  std::vector<bool> made(trace.tensors.size());
  for (std::size_t i = trace.ops.size(); i-- > 0 && trace.ops[i].block < 0;) {
    for (const TensorId output : trace.outputs(trace.ops[i])) made[index(output)] = true;
    if (is_product(row_of(trace.ops[i].kind).work)) return made;
  }
  return std::vector<bool>(trace.tensors.size());
}

bool is_loss_most(const Trace& trace, const Schedule& schedule, const Timeline& timeline,
                  const Peak& peak) {
  const std::vector<bool> of_loss = made_by_loss(trace);
  Bytes added, by_loss;
  for (const BufferId id : alive_after(schedule, timeline, peak.event)) {
    const Buffer& buffer = schedule[id];
    if (buffer.persistent || buffer.category == Category::Gradient) continue;
    added += buffer.size;
    if (buffer.tensor != no_tensor && of_loss[index(buffer.tensor)]) by_loss += buffer.size;
  }
  return by_loss + by_loss > added;
}

PeakMaker maker_of(const Trace& trace, const Schedule& schedule, const Timeline& timeline,
                   const Peak& peak, const Run* run) {
  if (run && run->task == Task::Optimizer) return PeakMaker::OptimizerStep;
  return is_loss_most(trace, schedule, timeline, peak) ? PeakMaker::Loss : PeakMaker::Other;
}

// Plans only move or recompute what they keep, unless they code it; rewriting is what else changes.
std::string cautions_of(const PlannedStep& step) {
  std::vector<std::string> cautions;
  const auto add = [&](std::string_view caution) {
    if (!caution.empty() && std::ranges::find(cautions, caution) == cautions.end())
      cautions.emplace_back(caution);
  };
  for (const auto& component : step.rewrites) add(component.row->caution);
  add(caution_of_codes(step.plan));
  return fmt::format("{}", fmt::join(cautions, "; "));
}

bool has_lanes_beside_regions(const JointGraph& graph) {
  return std::ranges::any_of(
      graph.lanes, [](Lane lane) { return lane != Lane::Compute && !is_of_regions(lane); });
}

// The step on one stream has the same nodes, so it takes the same time, and but for hoisted
// recovery in the same order (place_test.cpp). Copies have streams of their own all the same.
RecoveryTime recovery_of(const JointGraph& graph, const CostModel& costs,
                         const Evaluation& evaluation) {
  const Schedule& schedule = evaluation.schedule;
  if (!evaluation.planned.plan.overlap) return recovery_time(schedule, evaluation.timeline);
  if (!has_lanes_beside_regions(graph))
    return recovery_time(schedule, simulate_alone(costs, schedule), evaluation.timeline);
  const Schedule alone = place(graph, {.regions_on_compute = true});
  return recovery_time(alone, simulate(costs, alone), evaluation.timeline);
}

Evaluation begun(PlannedStep step) {
  Evaluation result{std::move(step), {}, {}, {}};
  PlannedStep& planned = result.planned;
  Report& report = result.report;
  report.strategy = planned.plan.strategy;
  report.reason = planned.refusal;
  report.applies = report.reason.empty();
  report.caution = cautions_of(planned);
  if (!report.applies) return result;
  if (!planned.derived) planned.derived = derived_of(planned);
  if (planned.trace->step.mesh[Axis::Pipeline] > 1) report.rank = planned.trace->step.rank;
  return result;
}

/// What schedule and timeline were made of.
struct Played {
  JointGraph graph;
  CostModel costs;
};

JointGraph lay_out(Evaluation& result) {
  const PlannedStep& step = result.planned;
  JointGraph graph = differentiate(*step.trace, step.plan, *step.derived);
  result.schedule = place(graph, placement_of(*step.trace, step.plan));
  return graph;
}

Played play(const Device& device, Evaluation& result) {
  const PlannedStep& step = result.planned;
  JointGraph graph = lay_out(result);
  const bool moves = moves_paged_states(*step.trace, result.schedule, device);
  Played played{std::move(graph), CostModel(*step.trace, step.derived->needs, device, moves)};
  result.timeline = simulate(played.costs, result.schedule);
  return played;
}

void add_peak(Evaluation& result) {
  const Trace& trace = *result.planned.trace;
  Report& report = result.report;
  const Peak top = peak(result.schedule, result.timeline);
  report.live_peak = top.bytes;
  report.at_peak = top.by_category;
  const Run* const at_peak = run_at_peak(result.schedule, result.timeline, top);
  report.peak_at = describe_peak(trace, result.timeline, top, at_peak);
  report.peak_maker = maker_of(trace, result.schedule, result.timeline, top, at_peak);
}

void add_kept(Evaluation& result) {
  const PlannedStep& step = result.planned;
  Report& report = result.report;
  report.planned = plan_arena(result.schedule).size;
  report.pinned = host_copies_peak(result.schedule);
  report.saved = saved_bytes(*step.trace, step.plan, *step.derived);
  report.units = block_units(*step.trace, step.plan, step.derived->needs);
}

}  // namespace

Evaluation evaluate(const Trace& asked, PlannedStep step, const Device& device,
                    const MemoryBudget& budget) {
  Evaluation result = begun(std::move(step));
  if (!result.report.applies) return result;
  const Played played = play(device, result);
  add_peak(result);
  add_kept(result);
  result.report.recovery = recovery_of(played.graph, played.costs, result);
  StepTotals totals = totals_of(asked, device, result);
  set_memory(totals.calls, budget, totals.report);
  result.report = std::move(totals.report);
  return result;
}

Evaluation evaluate(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                    const Device& device, const MemoryBudget& budget) {
  return evaluate(*trace, plan_step(trace, strategy), device, budget);
}

Evaluation place_step(PlannedStep planned) {
  Evaluation result = begun(std::move(planned));
  if (result.report.applies) lay_out(result);
  return result;
}

Evaluation play_step(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                     const Device& device) {
  Evaluation result = begun(plan_step(trace, strategy));
  if (result.report.applies) play(device, result);
  return result;
}

StepTotals totals_of(const Trace& asked, const Device& device, const Evaluation& made) {
  const Trace& trace = *made.planned.trace;
  const auto& gradients = made.planned.derived->needs.gradients;
  StepTotals totals{
      .report = made.report,
      .times = times_of(trace, made.schedule, made.timeline),
      .calls = allocator::calls_of(made.planned, made.schedule, device),
      .flops = &asked == &trace ? flops_by_unit(asked, gradients) : flops_by_unit(asked)};
  set_rates(asked, device, totals);
  return totals;
}

bool fits(const PlannedStep& planned, const Device& device, const MemoryBudget& budget) {
  if (!planned.refusal.empty()) return false;
  const allocator::AllocatorCalls calls = allocator::calls_of(planned, lower(planned), device);
  return !allocator::replay_allocator(calls, budget.allocator, budget.capacity).out_of_memory;
}

bool may_fit(const PlannedStep& planned, const Device& device, const MemoryBudget& budget) {
  if (!planned.refusal.empty()) return false;
  const Framework& framework = find_framework(planned.trace->step.framework);
  const Schedule schedule = lower(planned);
  return allocator::requested_peak(schedule, framework, device) <= budget.capacity;
}

}  // namespace tidemark
