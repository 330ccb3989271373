// Reads how an input of a trace is filled: docs/trace_format.md says what every field means.
#pragma once

#include "base/json_reader.h"
#include "traces/fill.h"

namespace tidemark {

/// Throws InputError with the place of what is wrong.
InputFill read_fill(const JsonView& object);

}  // namespace tidemark
