// Replays a step per batch, then copies the parameters into a second step that tests them.
#include "examples/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "profiler/initial_values.h"
#include "profiler/numbers.h"
#include "profiler/replay.h"

namespace tidemark::training {
namespace {

template <typename Visit>
void for_each_storage(const Trace& trace, Category category, Visit visit) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (trace[id].category == category && trace[id].storage == id) visit(id, trace[id]);
  }
}

void write_inputs(profiler::Replay& replay, const profiler::NamedValues& inputs) {
  const Trace& trace = replay.trace();
  for_each_storage(trace, Category::Input, [&](TensorId id, const Tensor& tensor) {
    const auto given = inputs.find(tensor.name);  // masks and positions are the model's own
    const std::vector<double> numbers =
        given != inputs.end() ? given->second : profiler::synthetic_input(trace, id, 0);
    replay.write(id, profiler::bytes_of(numbers, tensor.dtype).data());
  });
}

/// One task under one strategy: the network that learns, and the same one that is tested.
class Trainer {
 public:
  Trainer(const Task& task, std::string_view strategy, Backend& backend)
      : task_(task), strategy_(parse_strategy(strategy)), backend_(backend) {
    learns_ = plan_step(vanilla_, strategy_);
    if (learns_.refusal.empty()) tested_ = plan_step(trace_of(test_options()), strategy_);
  }

  const Refusal& refusal() const { return learns_.refusal; }

  TrainedRun run(std::int64_t steps, std::uint64_t seed) const {
    profiler::Replay replay(learns_, backend_);
    write_initial_parameters(replay, seed);
    TrainedRun result;
    result.planned = replay.arena().size;
    for (std::int64_t i = 0; i < steps; ++i) {
      write_inputs(replay, task_.batch_of(seed, i));
      const double loss =
          replay
              .step({.number = i,
                     .seed = seed,
                     .learning_rate = learning_rate_at(task_.learning_rate, i, steps)})
              .loss;
      if (!std::isfinite(loss))
        throw InputError(fmt::format("{}: the loss of step {} is {}", strategy_.text, i, loss));
      result.losses.push_back(loss);
    }
    test(replay, result);
    return result;
  }

 private:
  StepOptions training_options() const {
    return {.batch = task_.batch, .precision = Precision::Fp32};
  }
  // Without optimizer state, and never updated: its learning rate is 0.
  StepOptions test_options() const {
    return {.batch = task_.held_out_batch,
            .precision = Precision::Fp32,
            .optimizer = Optimizer::Sgd,
            .dropout = 0.0};
  }
  std::shared_ptr<const Trace> trace_of(const StepOptions& options) const {
    return std::make_shared<const Trace>(build_trace(task_.model, options));
  }

  // Where norms lost their affine part, the linears behind them have taken it, so that every
  // strategy starts as the same function; couplings add nothing to learn.
  void write_initial_parameters(profiler::Replay& replay, std::uint64_t seed) const {
    const Trace& trace = replay.trace();
    profiler::NamedValues values = profiler::initial_parameters(*vanilla_, seed);
    profiler::add_initial_parameters(values, trace, seed);
    values = profiler::merge_affine(*vanilla_, trace, std::move(values));
    for_each_storage(trace, Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      replay.write(id, profiler::bytes_of(values.at(tensor.name), tensor.dtype).data());
    });
  }

  void test(const profiler::Replay& learned, TrainedRun& result) const {
    profiler::Replay replay(tested_, backend_);
    copy_parameters(learned, replay);
    if (task_.is_classifier) replay.keep_gradients();
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < task_.held_out_batches; ++i) {
      const profiler::NamedValues inputs = task_.held_out(i);
      write_inputs(replay, inputs);
      result.held_out_loss += replay.step({.updates = false}).loss;
      if (task_.is_classifier) right += is_right(replay, inputs.at("targets")[0]);
    }
    const auto batches = static_cast<double>(task_.held_out_batches);
    result.held_out_loss /= batches;
    if (task_.is_classifier) result.accuracy = static_cast<double>(right) / batches;
  }

  static void copy_parameters(const profiler::Replay& from, profiler::Replay& to) {
    std::map<std::string, TensorId> source;
    for_each_storage(from.trace(), Category::Parameter,
                     [&](TensorId id, const Tensor& tensor) { source[tensor.name] = id; });
    for_each_storage(to.trace(), Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(size(tensor).count));
      from.read(source.at(tensor.name), bytes.data());
      to.write(id, bytes.data());
    });
  }

  // With a single sample the gradient of the head's bias is softmax(logits) − one-hot(target).
  static bool is_right(const profiler::Replay& replay, double target) {
    const Trace& trace = replay.trace();
    const auto bias = std::ranges::find(trace.tensors, "head.bias", &Tensor::name);
    CHECK(bias != trace.tensors.end());
    std::vector<double> scores =
        replay.gradient(static_cast<TensorId>(bias - trace.tensors.begin()));
    const auto expected = static_cast<std::ptrdiff_t>(target);
    scores[static_cast<std::size_t>(expected)] += 1;
    return std::ranges::max_element(scores) - scores.begin() == expected;
  }

  const Task& task_;
  const StrategySpec strategy_;
  Backend& backend_;
  const std::shared_ptr<const Trace> vanilla_ = trace_of(training_options());
  PlannedStep learns_, tested_;
};

}  // namespace

double learning_rate_at(double highest, std::int64_t step, std::int64_t steps) {
  constexpr double lowest = 0.1;
  const double progress = (static_cast<double>(step) + 1) / static_cast<double>(steps);
  if (progress < 0.1) return highest * progress / 0.1;
  const double wave = (1 + std::cos(std::numbers::pi * (progress - 0.1) / 0.9)) / 2;
  return highest * (lowest + (1 - lowest) * wave);
}

Trained train(const Task& task, std::string_view strategy, std::int64_t steps, std::int64_t seeds,
              Backend& backend) {
  const Trainer trainer(task, strategy, backend);
  Trained result{.strategy = std::string(strategy), .refusal = trainer.refusal(), .runs = {}};
  if (!result.refusal.empty()) return result;
  for (std::int64_t seed = 1; seed <= seeds; ++seed)
    result.runs.push_back(trainer.run(steps, static_cast<std::uint64_t>(seed)));
  return result;
}

}  // namespace tidemark::training
