// A profile of torch.profiler (Kineto), as export_chrome_trace() writes it: what ran on the streams
// of a GPU, or on the threads of the CPU where no GPU was profiled, and with profile_memory=True
// what was allocated by which operator.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "importers/timeline_builder.h"

namespace tidemark::importers {

/// Each kernel, and each operator of the CPU, is an op of the trace by its name.
/// InputError says file, JSON pointer, what is wrong and what would be right; `name` is the
/// recording's.
RecordedTimeline read_kineto(JsonView root, const std::string& name);

/// Does a text begin as such a profile?
bool is_kineto(const std::string& path);

}  // namespace tidemark::importers
