// Reads how an input of a trace is filled: docs/trace_format.md says what every field means.
#pragma once

#include "traces/fill.h"
#include "traces/json_reader.h"

namespace tidemark {

/// Throws InputError with the place of what is wrong.
InputFill read_fill(const JsonView& object);

}  // namespace tidemark
