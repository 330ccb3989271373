// What a report says of memory and rates, from what was played.
#include "analysis/report_totals.h"

#include <algorithm>

#include "simulator/allocator/allocator_limits.h"
#include "simulator/kernel_choice.h"

namespace tidemark {
namespace {

// What a sample consists of: the ids that the first table is asked for, but for places, by all
// context ranks together, or an image. Of a sound these are the tokens that are written.
void set_throughput(const Trace& trace, Report& report) {
  report.throughput = report.samples_per_second;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::Conv2d) return void(report.throughput_unit = "images");
    if (op.kind != OpKind::Embedding) continue;
    const InputFill* const fill = fill_of(trace, trace[trace.inputs(op)[0]]);
    if (fill && std::holds_alternative<fill::Positions>(*fill)) continue;
    const std::int64_t ids =
        numel(trace[trace.inputs(op)[0]].shape) * trace.step.mesh[Axis::Context];
    report.throughput *= static_cast<double>(ids) / static_cast<double>(trace.step.batch);
    return void(report.throughput_unit = "tokens");
  }
}

void set_utilization(const Trace& trace, const ModelFlops& flops, const Device& device,
                     Report& report) {
  const auto unit = static_cast<std::size_t>(unit_used(device, precision_of(trace.step)));
  const double own = device.flops_per_second[unit];
  const auto micro_batches = static_cast<double>(trace.step.accumulate.count);
  const auto share = [&](double of_unit, double rate) {
    const double possible = rate * static_cast<double>(report.step.count());
    return possible > 0 ? micro_batches * of_unit * 1e9 / possible : 0;
  };
  report.mfu = share(flops.own, own) + share(flops.fp8, device.fp8_flops_per_second.value_or(own)) +
               share(flops.fp4, device.fp4_flops_per_second.value_or(own));
}

// Large enough that nothing is released or refused: what the peak would be.
constexpr Bytes unlimited{std::int64_t{1} << 59};

template <class Calls>
void set_memory_of(const Calls& calls, const MemoryBudget& budget, Report& report) {
  using allocator::AllocatorResult;
  AllocatorResult result = replay_allocator(calls, budget.allocator, budget.capacity);
  report.capacity = budget.capacity;
  report.fits = !result.out_of_memory;
  report.allocator_retries = result.retries;
  if (result.out_of_memory) result = replay_allocator(calls, budget.allocator, unlimited);
  report.allocated_peak = result.allocated_peak;
  report.allocated_at_rest = result.allocated_at_rest;
  report.reserved_peak = result.reserved_peak;
  if (report.fits) return;
  report.short_by = std::max(Bytes{0}, result.allocated_peak - budget.capacity);
  if (report.short_by > Bytes{0} || budget.allocator.expandable_segments) return;
  const allocator::AllocatorSettings expandable = allocator::expandable(budget.allocator);
  report.fits_expandable = !replay_allocator(calls, expandable, budget.capacity).out_of_memory;
}

template <class Calls>
bool is_smaller(const Calls& calls, const MemoryBudget& budget, Bytes other) {
  const auto limits = limits_of(calls, budget.allocator);
  return limits && limits->allocated < other && limits->capacity <= budget.capacity;
}

}  // namespace

bool is_surely_smaller(const allocator::AllocatorCalls& calls, const MemoryBudget& budget,
                       Bytes other) {
  return is_smaller(calls, budget, other);
}

bool is_surely_smaller(const allocator::RepeatedCalls& calls, const MemoryBudget& budget,
                       Bytes other) {
  return is_smaller(calls, budget, other);
}

void set_memory(const allocator::AllocatorCalls& calls, const MemoryBudget& budget,
                Report& report) {
  set_memory_of(calls, budget, report);
}

void set_memory(const allocator::RepeatedCalls& calls, const MemoryBudget& budget, Report& report) {
  set_memory_of(calls, budget, report);
}

void set_rates(const Trace& asked, const Device& device, StepTotals& totals) {
  Report& report = totals.report;
  const StepTimes& times = totals.times;
  report.step = times.duration;
  const std::int64_t samples =
      asked.step.batch * asked.step.accumulate.count * asked.step.mesh[Axis::Data];
  report.samples_per_second = static_cast<double>(samples) * 1e9 /
                              static_cast<double>(std::max<std::int64_t>(1, report.step.count()));
  report.communication = times.communication;
  report.overlap = times.overlap;
  report.launch_bound = times.waits_for_host > times.duration / 10;
  set_throughput(asked, report);
  set_utilization(asked, totals.flops, device, report);
}

}  // namespace tidemark
