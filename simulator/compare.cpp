#include "simulator/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/trace_builder.h"

namespace tidemark {
namespace {

std::shared_ptr<const Trace> trace_with_batch(const Question& question, std::int64_t batch) {
  if (question.trace) return question.trace;
  StepOptions step = question.step;
  step.batch = batch;
  return std::make_shared<const Trace>(build_trace(question.model, step));
}

void add_ratios(std::vector<Report>& rows) {
  const auto vanilla = std::ranges::find(rows, "vanilla", &Report::strategy);
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

std::string price(const Report& row) {
  if (!row.time_ratio) return "";
  const double percent = (*row.time_ratio - 1) * 100;
  return percent < 0.05 ? ", at no cost in time" : fmt::format(", for {:.1f} % more time", percent);
}

// What keeps a row that does not fit out.
std::string shortage(const Report& row) {
  if (row.short_by.count == 0) return "kept out by fragmentation";
  return to_text(row.short_by) + " short";
}

// The fastest that fits; if none does, the smallest and what is missing.
std::string conclude(const Comparison& comparison) {
  const Report* fastest = nullptr;
  const Report* smallest = nullptr;
  for (const Report& row : comparison.rows) {
    if (!row.applies) continue;
    if (row.fits && (!fastest || row.step < fastest->step)) fastest = &row;
    if (!smallest || row.allocated_peak < smallest->allocated_peak) smallest = &row;
  }
  const std::string& device = comparison.question.device.title;
  if (!smallest) return "None of these strategies applies to this model.";
  if (!fastest)
    return fmt::format("Nothing fits in {} ({}): {} comes nearest and is {}.",
                       to_text(comparison.room.capacity), device, smallest->strategy,
                       shortage(*smallest));
  const std::string least = smallest == fastest || !smallest->fits
                                ? ""
                                : fmt::format("; {} needs least, {}{}", smallest->strategy,
                                              to_text(smallest->allocated_peak), price(*smallest));
  if (fastest->strategy == "vanilla")
    return fmt::format("Vanilla fits ({} of {}) and is the fastest{}.",
                       to_text(fastest->allocated_peak), to_text(comparison.room.capacity), least);
  const auto vanilla = std::ranges::find(comparison.rows, "vanilla", &Report::strategy);
  const bool vanilla_is_short = vanilla != comparison.rows.end() && !vanilla->fits;
  return fmt::format(
      "{}{} is the fastest that fits ({} of {}{}){}.",
      vanilla_is_short ? fmt::format("Vanilla is {}; ", shortage(*vanilla)) : std::string(),
      fastest->strategy, to_text(fastest->allocated_peak), to_text(comparison.room.capacity),
      price(*fastest), least);
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
  comparison.attention = fused ? Attention::Flash : Attention::Math;
  if (trace.blocks.empty()) return;
  const Shape& input = trace[trace.blocks.front().input].shape;
  comparison.tokens = numel(input) / std::max<std::int64_t>(1, input.back() * trace.step.batch);
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

Room room_of(const Question& question) {
  const Bytes context = question.device.context.value_or(Bytes{});
  return {question.budget.value_or(question.device.capacity - context), question.allocator};
}

Comparison compare(const Question& question,
                   const std::function<void(std::size_t done)>& progress) {
  Comparison comparison{question, room_of(question), 0, 0, {}, {}, 0, {}};
  const auto trace = trace_with_batch(question, question.step.batch);
  if (!question.trace) require_used_options(*trace);
  describe(*trace, comparison);
  for (const StrategySpec& strategy : question.strategies) {
    Report row = answer(trace, strategy, question.device, comparison.room).report;
    if (question.finds_largest_batch && row.applies)
      row.largest_batch = largest_batch(question, strategy, comparison.room);
    comparison.rows.push_back(std::move(row));
    if (progress) progress(comparison.rows.size());
  }
  add_ratios(comparison.rows);
  comparison.conclusion = conclude(comparison);
  return comparison;
}

std::int64_t largest_batch(const Question& question, const StrategySpec& strategy,
                           const Room& room) {
  constexpr std::int64_t limit = std::int64_t{1} << 24;
  const auto fits_with = [&](std::int64_t batch) {
    return fits(trace_with_batch(question, batch), strategy, question.device, room);
  };
  if (!fits_with(1)) return 0;
  std::int64_t low = 1, high = 2;
  while (high < limit && fits_with(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits_with(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace tidemark
