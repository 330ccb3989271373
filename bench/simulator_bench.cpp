// What a slider costs: one strategy of a real model from names to all four memory numbers, whole
// comparisons, and how time grows with the number of ops. Each checks its answer before it is
// timed.
#include <benchmark/benchmark.h>

#include "analysis/comparison.h"
#include "analysis/rank_report.h"
#include "analysis/report_totals.h"
#include "simulator/arena.h"
#include "simulator/graph/differentiate.h"
#include "simulator/kernel_choice.h"
#include "simulator/lower.h"
#include "simulator/parallel/cluster.h"
#include "simulator/place/place.h"
#include "simulator/simulate.h"
#include "traces/presets.h"

namespace tidemark {
namespace {

struct Numbers {
  Bytes live, planned, allocated, reserved;
  std::size_t ops = 0;
};

// Build the trace, plan, lower, simulate, pack, replay the allocator.
Numbers all_numbers(const Model& model, const StepOptions& step, const StrategySpec& strategy,
                    const Device& device) {
  const auto trace = std::make_shared<const Trace>(build_trace(model, step));
  const PlannedStep planned = plan_step(trace, strategy);
  const Derived& derived = *planned.derived;
  const Schedule schedule = lower(planned);
  const Timeline timeline = simulate(*planned.trace, derived.needs, schedule, device);
  const allocator::AllocatorResult pool =
      allocator::replay_allocator(*planned.trace, schedule, find_framework(step.framework), device,
                                  {}, Bytes{std::int64_t{1} << 59});
  return {peak(schedule, timeline).bytes, plan_arena(schedule).size, pool.allocated_peak,
          pool.reserved_peak, planned.trace->ops.size()};
}

bool plausible(const Numbers& n) {
  return n.live.count > 0 && n.planned >= n.live && n.reserved >= n.allocated;
}

void llama_13b(benchmark::State& state, const char* strategy_text) {
  const Model model = find_model("llama-13b");
  const StepOptions step{.batch = 8, .sequence = 2048, .precision = Precision::AmpBf16};
  const Device device = find_device("a100-80gb");
  const StrategySpec strategy = parse_strategy(strategy_text);
  if (!plausible(all_numbers(model, step, strategy, device))) state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(all_numbers(model, step, strategy, device));
}
BENCHMARK_CAPTURE(llama_13b, vanilla, "vanilla")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, checkpoint, "checkpoint")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, lowmemorybp, "lowmemorybp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, mesa, "mesa")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, reversible, "reversible")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, offload, "offload")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(llama_13b, pareprop, "pareprop")->Unit(benchmark::kMillisecond);

void compare_llama_13b(benchmark::State& state) {
  Scenario scenario{.model = find_model("llama-13b"),
                    .step = {.batch = 8, .sequence = 2048, .precision = Precision::AmpBf16},
                    .device = find_device("a100-80gb"),
                    .strategies = default_strategies()};
  for (auto _ : state) benchmark::DoNotOptimize(compare(scenario));
  state.counters["strategies"] = static_cast<double>(scenario.strategies.size());
}
BENCHMARK(compare_llama_13b)->Unit(benchmark::kMillisecond);

// One layout of a search: eight stages, eight tensor-parallel ranks, all micro-batches.
void thousand_gpus(benchmark::State& state) {
  const Model model = find_model("llama-7b");
  const Device device = device_of(find_cluster("dgx-h100"));
  StepOptions step{.batch = 1, .sequence = 2048, .precision = Precision::Bf16};
  step.master_weights = true;
  step.optimizer_form = OptimizerForm::Fused;
  step.mesh = parse_mesh("pp=8,dp=16,tp=8");
  step.shard = parse_sharding("megatron");
  step.accumulate.count = state.range(0);
  step = as_run_on(device, std::move(step));
  const StrategySpec vanilla = parse_strategy("vanilla");
  const MemoryBudget budget{device.capacity, {}};
  const auto totals = [&] {
    return totals_of_ranks(rank_traces(model, step), vanilla, device, budget);
  };
  const Report whole = evaluate_ranks(rank_traces(model, step), vanilla, device, budget, {}).report;
  const Report here = totals();
  if (here.step != whole.step || here.allocated_peak != whole.allocated_peak)
    state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(totals());
}
BENCHMARK(thousand_gpus)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

// A narrow LLaMA of any depth: 22 ops per block.
Model deep_model(std::int64_t depth) {
  Model model = find_model("llama-7b");
  auto& config = std::get<DecoderConfig>(model.config);
  config.depth = depth, config.width = 64, config.head_width = 16;
  config.heads = config.key_heads = 4, config.mlp = 128;
  return model;
}

void lower_and_simulate(benchmark::State& state) {
  const StepOptions step{.batch = 1, .sequence = 16, .precision = Precision::Bf16};
  const Trace trace = build_trace(deep_model(state.range(0) / 22), step);
  const Device device = find_device("a100-80gb");
  const Plan plan = keep_everything(trace);
  const auto runs = [&] {
    const Derived derived = derive(trace, plan);
    const Schedule schedule = place(differentiate(trace, plan, derived), placement_of(trace, plan));
    return simulate(trace, derived.needs, schedule, device).runs.size();
  };
  if (runs() < trace.ops.size() / 2) state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(runs());
  state.counters["ops"] = static_cast<double>(trace.ops.size());
  state.SetComplexityN(static_cast<benchmark::IterationCount>(trace.ops.size()));
}
BENCHMARK(lower_and_simulate)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

}  // namespace
}  // namespace tidemark
