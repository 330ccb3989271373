// Steps of one rank among several, small enough to count in the head.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "simulator/arena.h"
#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/place/place.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/step_facts.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"
#include "traces/trace_check.h"

namespace tidemark {

/// fp32 and AdamW unless the options say otherwise.
inline StepOptions of_ranks(std::int64_t ranks, std::string_view shard, StepOptions options = {}) {
  options.batch = 2;
  if (!options.precision) options.precision = Precision::Fp32;
  options.mesh[Axis::Data] = ranks;
  options.shard = parse_sharding(shard);
  return options;
}

/// bf16 beside fp32 copies, a fused AdamW.
inline StepOptions of_bf16(std::int64_t ranks, std::string_view shard,
                           std::int64_t micro_batches = 1) {
  StepOptions options = of_ranks(ranks, shard, {.precision = Precision::Bf16});
  options.accumulate = {micro_batches};
  options.master_weights = true;
  options.optimizer_form = OptimizerForm::Fused;
  return options;
}

inline Trace trace_of(const StepOptions& options) { return build_trace(small_gpt2(), options); }

inline Schedule schedule_of(const StepOptions& options, std::string_view strategy = "vanilla") {
  return lower(planned(trace_of(options), strategy));
}

inline std::int64_t parameters_of(const Trace& trace) {
  std::int64_t count = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].category == Category::Parameter &&
        trace.tensors[t].storage == static_cast<TensorId>(t))
      count += numel(trace.tensors[t].shape);
  return count;
}

/// Between steps.
inline std::int64_t resting(const Schedule& schedule, Category category) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent && buffer.category == category) bytes += buffer.size.count;
  return bytes;
}

/// GPT-2's layer with one kernel for GELU, as in the formulas.
inline Model formula_gpt(std::int64_t depth) {
  return small_model("formula-gpt", Gpt2Config{.width = 64,
                                               .depth = depth,
                                               .heads = 4,
                                               .mlp = 256,
                                               .vocabulary = 500,
                                               .positions = 32,
                                               .activation = ActivationForm::Gelu});
}

/// Bytes that the step keeps when its forward is done.
inline std::int64_t kept_at_the_loss(const Model& model, const StepOptions& options,
                                     std::string_view strategy = "vanilla") {
  const Schedule schedule = lower(planned(build_rank_trace(model, options), strategy));
  Bytes live;
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step)) live += schedule[s->buffer].size;
    if (const auto* s = std::get_if<Free>(&step)) live -= schedule[s->buffer].size;
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (run && run->task == Task::Seed) return live.count;
  }
  return 0;
}

struct Exchanged {
  std::int64_t count = 0, bytes = 0;
};

/// By pattern, among the ranks along one axis of the mesh.
inline std::map<Pattern, Exchanged> exchanged(const Model& model, const StepOptions& options,
                                              Axis axis = Axis::Tensor) {
  const Trace trace = build_rank_trace(model, options);
  const Schedule schedule = lower(planned(trace, "vanilla"));
  std::map<Pattern, Exchanged> found;
  for (const Run& run : runs_of(schedule)) {
    const auto exchange = exchange_of(trace, schedule, run);
    if (!exchange || exchange->axis != axis) continue;
    ++found[exchange->pattern].count;
    found[exchange->pattern].bytes += exchange->size.count;
  }
  return found;
}

/// Trace, graph, schedule and arena of a rank, in the eyes of their judges.
inline void expect_sound_ranks(const Model& model, const StepOptions& options,
                               const char* strategy) {
  const auto trace = std::make_shared<const Trace>(build_rank_trace(model, options));
  const std::string what = fmt::format("{} {} {}", model.name, strategy, to_text(options.mesh));
  ASSERT_THAT(check(*trace), testing::IsEmpty()) << what;
  const PlannedStep step = plan_step(trace, parse_strategy(strategy));
  const JointGraph graph = differentiate(*step.trace, step.plan);
  ASSERT_THAT(validate(graph), testing::IsEmpty()) << what;
  const Schedule schedule = place(graph, placement_of(*step.trace, step.plan));
  ASSERT_THAT(validate(*step.trace, schedule), testing::IsEmpty()) << what;
  EXPECT_THAT(validate(schedule, plan_arena(schedule)), testing::IsEmpty()) << what;
}

}  // namespace tidemark
