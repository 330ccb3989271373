// What a framework's allocator was asked for while a step was captured, call by call: the same
// calls make the same blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/json_reader.h"
#include "traces/step_options.h"

namespace tidemark {

class Defects;

/// A call is a number: bytes to allocate, or below zero a free, of what was allocated so many
/// allocations ago. Example: 4096, 512, -2 allocates twice and frees the first.
struct RecordedCalls {
  std::vector<std::int64_t> setup;       ///< puts the model on the device
  std::vector<std::int64_t> first_step;  ///< makes what stays: optimizer state, workspaces
  std::vector<std::int64_t> step;        ///< an ordinary one
  std::size_t work = 0;  ///< calls of it up to its last run; behind it gradients are freed
  StepOptions of = {};   ///< the step that was captured; they say nothing of any other

  bool operator==(const RecordedCalls&) const = default;
};

/// More are a mistake.
inline constexpr std::size_t most_recorded_calls = 1 << 24;

/// The trace's `allocator_calls`, of no step yet. Throws InputError with the place of what is
/// wrong.
RecordedCalls read_recorded_calls(JsonView object);

/// What the list frees, below zero, is there, and no more than 2^58 bytes ever are.
void check_recorded_calls(const RecordedCalls& calls, Defects& defects);

}  // namespace tidemark
