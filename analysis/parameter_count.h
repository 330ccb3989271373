// How many parameters a step has, counted as people count a model's.
#pragma once

#include <cstdint>

#include "traces/presets.h"

namespace tidemark {

struct ParameterCount {
  std::int64_t all = 0;
  std::int64_t trainable = 0;

  bool operator==(const ParameterCount&) const = default;
};

/// Of what the trace holds: a tied table once.
ParameterCount count_parameters(const Trace& trace);

/// Of the model that the step trains: of all ranks together, and before its base was packed into
/// codes of fewer bits.
ParameterCount count_parameters(const Model& model, StepOptions step);

}  // namespace tidemark
