// docs/training.md: what was trained, and how it ended.
#pragma once

#include <span>
#include <string>

#include "examples/training/trainer.h"

namespace tidemark::training {

struct Outcome {
  Task task;
  std::int64_t seeds = 0;           ///< of the other strategies than vanilla
  std::vector<Trained> strategies;  ///< the first is vanilla
};

/// Every strategy that applies ended within noise.
bool all_within_noise(const Outcome& outcome);

std::string page(std::span<const Outcome> outcomes, std::int64_t steps);

}  // namespace tidemark::training
