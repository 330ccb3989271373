// Training steps that ran in PyTorch's own allocator (scripts/capture_steps, capture_models),
// beside what Tidemark says of the same steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "traces/step_options.h"
#include "traces/trace.h"

namespace tidemark {

/// Bytes of one step, measured or predicted.
struct StepBytes {
  std::int64_t saved = 0;      ///< for the backward: each storage once
  std::int64_t live = 0;       ///< most at once in forward and backward, no scratch inside ops
  std::int64_t allocated = 0;  ///< most at once in the whole step, as the allocator counts
  std::int64_t reserved = 0;
  std::int64_t parameters = 0, trainable = 0;  ///< elements
  std::int64_t state = 0;                      ///< of the optimizer, where it was measured
  std::int64_t update = 0;  ///< most at once in the optimizer's step, above what always stays
};

struct MeasuredStep {
  std::string name;
  StepOptions options;
  std::string device;
  std::string strategy;
  StepBytes measured, predicted;
  std::optional<StepBytes> replayed;  ///< from the allocator's calls, where the trace has them
};

/// The --tuning of a fixture's step, which has what peft's LoraConfig was given.
Tuning tuning_of(const JsonView& step);

/// How far a prediction is off, in per cent of what was measured.
double percent_off(std::int64_t predicted, std::int64_t measured);

/// All steps of a fixture, each with its prediction.
std::vector<MeasuredStep> measured_steps(const std::string& fixture);

/// Steps of torch.compile(model), or of compiled blocks. Saved are all storages that the graph's
/// node holds but parameters: autocast's copies of weights, too. Live is not measured, and 0.
std::vector<MeasuredStep> compiled_steps(const std::string& fixture);

/// Steps of models that Tidemark does not know, captured (scripts/capture_models): the folder has
/// their traces and what PyTorch's allocator said of them. Predicted from the ops, and replayed.
std::vector<MeasuredStep> captured_steps(const std::string& folder);

}  // namespace tidemark
