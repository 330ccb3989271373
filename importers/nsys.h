// A recording of Nsight Systems, exported as a database of SQLite: what ran on the streams of a
// GPU.
#pragma once

#include <string>

#include "importers/timeline_builder.h"

namespace tidemark::importers {

/// By its first bytes any database of SQLite, so that another program's is told as such; by its
/// name what would be one, and a report that has to be exported first.
bool is_nsys(const std::string& path);

/// What one process ran on the GPU that was busiest. InputError says file, table, row, what is
/// wrong and what would be right; `name` is the recording's.
RecordedTimeline read_nsys(const std::string& path, const std::string& name);

}  // namespace tidemark::importers
