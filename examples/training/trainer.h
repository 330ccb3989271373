// Trains a network under a strategy, on real kernels, as `tidemark replay` runs them.
#pragma once

#include <optional>

#include "examples/training/task.h"
#include "kernels/backend.h"
#include "simulator/strategies/strategy.h"

namespace tidemark::training {

struct TrainedRun {
  std::vector<double> losses;  ///< by step, of the batch before its update
  double held_out_loss = 0;
  std::optional<double> accuracy;  ///< on held-out samples, of classifiers
  Bytes planned;                   ///< all memory of a step
};

/// What a strategy did, seed by seed.
struct Trained {
  std::string strategy;
  std::string refusal;  ///< why it does not apply
  std::vector<TrainedRun> runs;
};

/// AdamW, the learning rate rising for a tenth of the steps and falling as a cosine to a tenth.
double learning_rate_at(double highest, std::int64_t step, std::int64_t steps);

/// Seeds 1, 2, …: each has its own initial parameters, batches and random numbers, which are the
/// same for all strategies.
Trained train(const Task& task, std::string_view strategy, std::int64_t steps, std::int64_t seeds,
              Backend& backend);

}  // namespace tidemark::training
