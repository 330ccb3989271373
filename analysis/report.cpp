// Evaluates one strategy: plan, lower, simulate, then each number of the report in turn.
#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/host_copies.h"
#include "analysis/report_totals.h"
#include "simulator/arena.h"
#include "simulator/cost/model_flops.h"
#include "simulator/graph/differentiate.h"
#include "simulator/kernel_choice.h"
#include "simulator/lower.h"
#include "simulator/place/place.h"
#include "simulator/simulate.h"

namespace tidemark {
namespace {

// Large enough that nothing is released or refused: what the peak would be.
constexpr Bytes unlimited{std::int64_t{1} << 59};

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

// What a sample consists of: the ids that the first table is asked for, by all context ranks
// together, or an image.
void add_throughput(const Trace& trace, Report& report) {
  report.throughput = report.samples_per_second;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::Conv2d) return void(report.throughput_unit = "images");
    if (op.kind != OpKind::Embedding) continue;
    const std::int64_t ids =
        numel(trace[trace.inputs(op)[0]].shape) * trace.step.mesh[Axis::Context];
    report.throughput *= static_cast<double>(ids) / static_cast<double>(trace.step.batch);
    return void(report.throughput_unit = "tokens");
  }
}

void add_utilization(const Trace& asked, double flops, const Device& device, Report& report) {
  const auto unit = static_cast<std::size_t>(unit_used(device, precision_of(asked.step)));
  const double possible = device.flops_per_second[unit] * static_cast<double>(report.step.count());
  const auto micro_batches = static_cast<double>(asked.step.accumulate.count);
  if (possible > 0) report.mfu = micro_batches * flops * 1e9 / possible;
}

// Plans only move or recompute what they keep, unless they code it; rewriting is what else changes.
std::string cautions_of(const PlannedStep& step) {
  std::vector<std::string> cautions;
  const auto add = [&](std::string_view caution) {
    if (!caution.empty() && std::ranges::find(cautions, caution) == cautions.end())
      cautions.emplace_back(caution);
  };
  for (const auto& component : step.rewrites) add(component.row->caution);
  if (const int bits = fewest_bits(step.plan); bits != 0) add(caution_of_quantized(bits));
  return fmt::format("{}", fmt::join(cautions, "; "));
}

bool has_lanes_beside_regions(const JointGraph& graph) {
  return std::ranges::any_of(graph.lanes, [](Lane lane) {
    return lane != Lane::Compute && lane != Lane::EvenRegions && lane != Lane::OddRegions;
  });
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

void add_time(const Trace& trace, const Evaluation& evaluation, Report& report) {
  const Timeline& timeline = evaluation.timeline;
  report.step = timeline.duration;
  const std::int64_t samples =
      trace.step.batch * trace.step.accumulate.count * trace.step.mesh[Axis::Data];
  report.samples_per_second = static_cast<double>(samples) * 1e9 /
                              static_cast<double>(std::max<std::int64_t>(1, report.step.count()));
  report.communication = communication_of(trace, evaluation.schedule, timeline);
  report.overlap = timeline.overlap;
  report.launch_bound = timeline.waits_for_host > timeline.duration / 10;
}

void add_allocator(const Trace& trace, const Schedule& schedule, const Device& device,
                   const MemoryBudget& budget, Report& report) {
  const Framework& framework = find_framework(trace.step.framework);
  const allocator::AllocatorCalls calls = allocator::calls_of(trace, schedule, framework, device);
  allocator::AllocatorResult result =
      allocator::replay_allocator(calls, budget.allocator, budget.capacity);
  report.capacity = budget.capacity;
  report.fits = !result.out_of_memory;
  report.allocator_retries = result.retries;
  if (result.out_of_memory)
    result = allocator::replay_allocator(calls, budget.allocator, unlimited);
  report.allocated_peak = result.allocated_peak;
  report.allocated_at_rest = result.allocated_at_rest;
  report.reserved_peak = result.reserved_peak;
  if (report.fits) return;
  report.short_by = std::max(Bytes{0}, result.allocated_peak - budget.capacity);
  if (report.short_by > Bytes{0} || budget.allocator.expandable_segments) return;
  const allocator::AllocatorSettings expandable = allocator::expandable(budget.allocator);
  report.fits_expandable =
      !allocator::replay_allocator(calls, expandable, budget.capacity).out_of_memory;
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

Played play(const Device& device, Evaluation& result) {
  const PlannedStep& step = result.planned;
  Played played{differentiate(*step.trace, step.plan, *step.derived),
                CostModel(*step.trace, step.derived->needs, device)};
  result.schedule = place(played.graph, placement_of(step.plan));
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

void add_totals(const Trace& asked, const Device& device, const MemoryBudget& budget,
                Evaluation& result) {
  const PlannedStep& step = result.planned;
  Report& report = result.report;
  add_allocator(*step.trace, result.schedule, device, budget, report);
  add_time(*step.trace, result, report);
  add_throughput(asked, report);
  const bool is_rewritten = &asked != step.trace.get();
  add_utilization(
      asked, is_rewritten ? model_flops(asked) : model_flops(asked, step.derived->needs.gradients),
      device, report);
}

}  // namespace

Evaluation evaluate(const Trace& asked, PlannedStep step, const Device& device,
                    const MemoryBudget& budget) {
  Evaluation result = begun(std::move(step));
  if (!result.report.applies) return result;
  const Played played = play(device, result);
  add_peak(result);
  add_kept(result);
  add_totals(asked, device, budget, result);
  result.report.recovery = recovery_of(played.graph, played.costs, result);
  return result;
}

Evaluation evaluate_totals(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                           const Device& device, const MemoryBudget& budget) {
  Evaluation result = begun(plan_step(trace, strategy));
  if (!result.report.applies) return result;
  play(device, result);
  add_totals(*trace, device, budget, result);
  return result;
}

Evaluation evaluate(std::shared_ptr<const Trace> trace, const StrategySpec& strategy,
                    const Device& device, const MemoryBudget& budget) {
  return evaluate(*trace, plan_step(trace, strategy), device, budget);
}

bool fits(const PlannedStep& planned, const Device& device, const MemoryBudget& budget) {
  if (!planned.refusal.empty()) return false;
  const Schedule schedule = lower(planned);
  const Framework& framework = find_framework(planned.trace->step.framework);
  return !allocator::replay_allocator(*planned.trace, schedule, framework, device, budget.allocator,
                                      budget.capacity)
              .out_of_memory;
}

bool may_fit(const PlannedStep& planned, const Device& device, const MemoryBudget& budget) {
  if (!planned.refusal.empty()) return false;
  const Framework& framework = find_framework(planned.trace->step.framework);
  const Schedule schedule = lower(planned);
  return allocator::requested_peak(schedule, framework, device) <= budget.capacity;
}

}  // namespace tidemark
