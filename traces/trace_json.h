// Trace files, *.trace.json: docs/trace_format.md says what every field means. One tensor or op per
// line, names instead of numbers, so that people can read them and compare two with diff.
#pragma once

#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "traces/trace.h"

namespace tidemark {

inline constexpr std::string_view trace_format = "tidemark-trace";
/// Counts up when an older program could not read, or would misread, a newer file.
inline constexpr int trace_version = 8;

/// The same text for equal traces, and read_trace(write_trace(t), …) == t, but for recorded calls
/// of another step, which are left out. Throws InputError if the trace is not sound, because nobody
/// could read the file.
std::string write_trace(const Trace& trace);

/// Throws InputError: one line for what is not a trace file, or all that check() finds; `file` is
/// only a name, for messages.
Trace read_trace(std::string_view json, std::string_view file);
/// The same for a trace that stands inside of another document.
Trace read_trace(JsonView root, std::string_view file);

/// The same with a file; its name may end in ".zst".
Trace load_trace(const std::string& path);

/// One line "name: defect", or for several a first line with their number and then at most 50.
std::string describe_defects(std::string_view name, const std::vector<std::string>& defects);

}  // namespace tidemark
