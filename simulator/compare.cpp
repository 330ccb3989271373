// Evaluates one strategy after the other on one trace, then adds ratios and the conclusion.
#include "simulator/compare.h"

#include <algorithm>

#include "simulator/kernel_choice.h"
#include "simulator/remedies.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

std::shared_ptr<const Trace> trace_with_batch(const Question& question, std::int64_t batch) {
  if (question.trace) return question.trace;
  StepOptions step = as_run_on(question.device, question.step);
  step.batch = batch;
  return std::make_shared<const Trace>(build_trace(question.model, step));
}

void add_ratios(std::vector<Report>& rows) {
  const auto vanilla = std::ranges::find(rows, reference_strategy().name, &Report::strategy);
  if (vanilla == rows.end()) return;
  const auto ratio = [](auto a, auto b) {
    return b == 0 ? 1 : static_cast<double>(a) / static_cast<double>(b);
  };
  const Report base = *vanilla;
  for (Report& row : rows) {
    if (!row.applies) continue;
    row.memory_ratio = ratio(row.allocated_peak.count, base.allocated_peak.count);
    row.time_ratio = ratio(row.step.count(), base.step.count());
    row.saved_ratio = ratio(row.units.per_op, base.units.per_op);
  }
}

void count_parameters(const Trace& trace, Comparison& comparison) {
  for (const Tensor& tensor : trace.tensors) {
    if (tensor.category != Category::Parameter || &trace[tensor.storage] != &tensor) continue;
    comparison.parameters += numel(tensor.shape);
    if (tensor.trainable) comparison.trainable += numel(tensor.shape);
  }
}

void describe(const Trace& trace, Comparison& comparison) {
  count_parameters(trace, comparison);
  const bool fused =
      std::ranges::find(trace.ops, OpKind::FlashAttention, &Op::kind) != trace.ops.end();
  comparison.notes = kernel_notes(trace, comparison.question.device);
  comparison.attention = fused ? Attention::Flash : Attention::Math;
  if (trace.blocks.empty()) return;
  const Shape& input = trace[trace.blocks.front().input].shape;
  comparison.tokens = numel(input) / std::max<std::int64_t>(1, input.back() * trace.step.batch);
}

void conclude(Comparison& comparison) {
  const Question& question = comparison.question;
  Conclusion& conclusion = comparison.conclusion;
  conclusion = conclude(comparison.rows, question.device, comparison.room.capacity);
  if (conclusion.maker != PeakMaker::OptimizerStep) return;
  const Report& smallest = *std::ranges::find(
      comparison.rows, conclusion.smallest->strategies.front(), &Report::strategy);
  conclusion.remedies = find_remedies(question, comparison.room, smallest);
  conclusion.has_foreach_temporaries =
      find_framework(question.step.framework).optimizer_loop == OptimizerLoop::Foreach &&
      smallest.at_peak[static_cast<std::size_t>(Category::Temporary)] > Bytes{0};
}

void add_batches(const Question& question, const StrategySpec& strategy, Room room,
                 const BatchProgress& progress, Report& row) {
  row.batches = batch_limits(question, strategy, room, progress);
  if (row.batches->every == row.batches->largest || room.allocator.expandable_segments) return;
  room.allocator = expandable(room.allocator);
  row.expandable_batches = batch_limits(question, strategy, room, progress);
}

}  // namespace

std::vector<StrategySpec> default_strategies() {
  std::vector<StrategySpec> specs;
  for (const char* text : {"vanilla", "approx-bp", "ms-bp", "lowmemorybp", "mesa", "checkpoint",
                           "checkpoint:selective", "overlap+checkpoint", "lowmemorybp+checkpoint",
                           "mesa+checkpoint", "reversible", "pareprop"})
    specs.push_back(parse_strategy(text));
  return specs;
}

std::shared_ptr<const Trace> trace_of(const Question& question) {
  auto trace = trace_with_batch(question, question.step.batch);
  if (!question.trace) require_used_options(*trace);
  return trace;
}

Room room_of(const Question& question) {
  const Bytes context = question.device.context.value_or(Bytes{});
  return {question.budget.value_or(question.device.capacity - context), question.allocator};
}

Comparison compare(const Question& question, const std::function<void(std::size_t done)>& progress,
                   const BatchProgress& batches) {
  Comparison comparison{question, room_of(question), 0, 0, {}, {}, 0, {}, {}};
  const auto trace = trace_of(question);
  describe(*trace, comparison);
  for (const StrategySpec& strategy : question.strategies) {
    Report row = answer(trace, strategy, question.device, comparison.room).report;
    if (question.finds_largest_batch && row.applies)
      add_batches(question, strategy, comparison.room, batches, row);
    comparison.rows.push_back(std::move(row));
    if (progress) progress(comparison.rows.size());
  }
  add_ratios(comparison.rows);
  conclude(comparison);
  return comparison;
}

BatchLimits batch_limits(const Question& question, const StrategySpec& strategy, const Room& room,
                         const BatchProgress& progress) {
  const auto ask = [&](auto test) {
    return [&question, &strategy, &room, test](std::int64_t batch) {
      return test(trace_with_batch(question, batch), strategy, question.device, room);
    };
  };
  return find_batch_limits({.may_fit = ask(may_fit), .fits = ask(fits)}, progress);
}

}  // namespace tidemark
