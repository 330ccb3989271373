// What a plan costs to find: the front of all budgets of real models, and one budget more.
#include <benchmark/benchmark.h>

#include "analysis/planning/plan_search.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

struct Case {
  const char* model;
  std::int64_t batch;
  Precision precision;
};

constexpr Case gpt2{"gpt2", 16, Precision::Fp32};
constexpr Case bert_large{"bert-large", 32, Precision::Fp32};
constexpr Case vit_l{"vit-l-16", 64, Precision::AmpFp16};
constexpr Case llama_7b{"llama-7b", 4, Precision::Bf16};
constexpr Case llama_13b{"llama-13b", 8, Precision::AmpBf16};

std::shared_ptr<const Trace> trace_of(const Case& c) {
  const StepOptions step{.batch = c.batch, .precision = c.precision};
  return std::make_shared<const Trace>(build_trace(find_model(c.model), step));
}

void whole_front(benchmark::State& state, const Case& c) {
  const auto trace = trace_of(c);
  const Device device = find_device("a100-80gb");
  if (Planner(trace, device, {}).size() < 100) state.SkipWithError("too few points");
  for (auto _ : state) benchmark::DoNotOptimize(Planner(trace, device, {}).size());
}
BENCHMARK_CAPTURE(whole_front, gpt2, gpt2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_front, bert_large, bert_large)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_front, vit_l_amp, vit_l)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_front, llama_7b, llama_7b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_front, llama_13b_amp, llama_13b)->Unit(benchmark::kMillisecond);

// Another budget each time, with the allocator's replay of what it names.
void one_budget_more(benchmark::State& state, const Case& c) {
  const auto trace = trace_of(c);
  const Device device = find_device("a100-80gb");
  const PlanSearch search(plan_step(trace, parse_strategy("vanilla")), device,
                          {device.capacity, {}}, Measure::Allocated);
  const std::int64_t least = search.planner()[0].bytes;
  const std::int64_t most = search.planner()[search.planner().size() - 1].bytes;
  std::int64_t share = 0;
  for (auto _ : state) {
    share = (share + 37) % 100;
    const Bytes budget{least + (most - least) / 100 * share + (64 << 20)};
    const auto point = search.within(budget, false);
    if (!point || search.bytes_of(*point) > budget) state.SkipWithError("above its budget");
  }
}
BENCHMARK_CAPTURE(one_budget_more, gpt2, gpt2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_budget_more, llama_13b_amp, llama_13b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tidemark
