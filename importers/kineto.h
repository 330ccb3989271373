// A profile of torch.profiler (Kineto), as export_chrome_trace() writes it: what ran on the streams
// of a GPU, or on the threads of the CPU where no GPU was profiled, and with profile_memory=True
// what was allocated by which operator.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark::importers {

/// Each kernel, and each operator of the CPU, is an op of the trace by its name; blocks of one
/// size that one operator has allocated are one tensor. What the profile does not say stays
/// unknown.
struct KinetoTimeline {
  std::string device;  ///< "cuda:0", "cpu"
  std::shared_ptr<const Trace> trace;
  Schedule schedule;
  Timeline timeline;
  std::vector<std::string> callers;  ///< by tensor: operators, innermost first
};

/// InputError says file, JSON pointer, what is wrong and what would be right; `name` is the
/// recording's.
KinetoTimeline read_kineto(JsonView root, const std::string& name);

/// Does a text begin as such a profile?
bool is_kineto(const std::string& path);

}  // namespace tidemark::importers
