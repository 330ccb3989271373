// Where a step's time goes: its runs in groups of one task, kind of op and stream. What a diff, and
// a check, tell about a step that became slower.
#pragma once

#include <string>
#include <vector>

#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark::diff {

struct TimeGroup {
  std::string task;  ///< "backward", "recompute", "copy to the host", …
  std::string op;    ///< what the op does, by its kind; "" for runs of none, as the optimizer's
  std::int64_t stream = 0;
  std::int64_t runs = 0;
  Nanoseconds time{};  ///< on its stream; streams overlap, so all groups can exceed the step

  bool operator==(const TimeGroup&) const = default;
};

/// "backward of linear"; "optimizer".
std::string name_of(const TimeGroup& group);

/// Longest first; equal ones by name and stream.
std::vector<TimeGroup> time_groups(const Trace& trace, const Schedule& schedule,
                                   const Timeline& timeline);

}  // namespace tidemark::diff
