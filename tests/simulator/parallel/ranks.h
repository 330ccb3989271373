// Steps of one rank among several, small enough to count in the head.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "simulator/lower.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/step_facts.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

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

}  // namespace tidemark
