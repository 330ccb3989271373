// A file of steps that somebody has timed: what was trained, as `tidemark compare` is asked about
// it, and how long a step took.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/comparison.h"

namespace tidemark::cli {

struct TimedStep {
  std::string place;  ///< "steps.json: /steps/0/compare"
  std::string asked;  ///< "llama-3-8b -b 2 --gpus 8 --shard fsdp2"
  Scenario scenario;  ///< of one strategy
  Nanoseconds measured{};
};

/// Throws InputError with the place of what is wrong, be it in the JSON or in what is asked. All
/// steps are on one device, in clusters of their own.
std::vector<TimedStep> read_timed_steps(std::string_view json, std::string_view file);

}  // namespace tidemark::cli
