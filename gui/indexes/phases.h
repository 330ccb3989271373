// Forward, backward and optimizer of each step that a recording has.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/recording/recording.h"
#include "gui/indexes/track_index.h"

namespace tidemark::gui {

/// A part of a step: "forward", "backward", "optimizer".
struct Phase {
  std::string_view name;
  Range range;
  std::size_t step = 0;  ///< of the recording, the first is 0
};

/// In order of time, from 0 to `end`, without those that take no time. Each begins with the first
/// run of its kind: what follows in between, such as recomputation in the backward phase or the
/// forward of a further micro-batch, belongs to it. A forward behind an optimizer begins a step.
std::vector<Phase> phases_of(const Recording& recording, double end);

}  // namespace tidemark::gui
