// One real step of a small network under a strategy, with all its gradients by name.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "profiler/gradient_difference.h"
#include "profiler/initial_values.h"
#include "profiler/numbers.h"
#include "profiler/replay.h"
#include "tests/support/small_models.h"

namespace tidemark::profiler {

struct Replayed {
  double loss = 0;
  NamedValues gradients;
  Timeline timeline;
  Bytes planned;
};

inline void load(Replay& replay, const NamedValues& parameters, std::uint64_t seed = 1) {
  const Trace& trace = replay.trace();
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const Tensor& tensor = trace[id];
    if (tensor.storage != id) continue;
    std::vector<double> numbers;
    if (tensor.category == Category::Parameter)
      numbers = parameters.at(tensor.name);
    else if (tensor.category == Category::Input)
      numbers = synthetic_input(trace, id, seed);
    else
      continue;
    replay.write(id, bytes_of(numbers, tensor.dtype).data());
  }
}

inline Replayed replayed(const PlannedStep& planned, Backend& backend,
                         const NamedValues& parameters) {
  Replay replay(planned, backend);
  load(replay, parameters);
  replay.keep_gradients();
  const ReplayedStep step = replay.step({.seed = 7});
  Replayed result{.loss = step.loss,
                  .gradients = {},
                  .timeline = step.timeline,
                  .planned = replay.arena().size};
  for (std::size_t t = 0; t < planned.trace->tensors.size(); ++t) {
    const Tensor& tensor = planned.trace->tensors[t];
    if (tensor.category != Category::Parameter) continue;
    std::vector<double> gradient = replay.gradient(static_cast<TensorId>(t));
    if (!gradient.empty()) result.gradients[tensor.name] = std::move(gradient);
  }
  return result;
}

inline PlannedStep planned(const Model& model, const StepOptions& step, std::string_view strategy) {
  PlannedStep result =
      plan_step(std::make_shared<Trace>(build_trace(model, step)), parse_strategy(strategy));
  EXPECT_EQ(result.refusal, "") << strategy;
  return result;
}

/// Keeps everything, on the network of another plan.
inline PlannedStep stored(const PlannedStep& like) {
  return {.trace = like.trace, .plan = keep_everything(*like.trace), .refusal = ""};
}

/// A norm's bias in front of the keys shifts all scores of a query alike: its gradient is zero, and
/// what is there is rounding alone, which has no scale.
inline NamedValues without_zeros(NamedValues gradients) {
  std::erase_if(gradients, [](const auto& g) { return g.first.ends_with("pool_k.norm.bias"); });
  return gradients;
}

inline double norm_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace tidemark::profiler
