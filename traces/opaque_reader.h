// Reads the row of an opaque op: docs/trace_format.md says what every field means.
#pragma once

#include "base/json_reader.h"
#include "traces/opaque.h"

namespace tidemark {

/// "in0" to "out15" as a bit position of `Operands`. Throws InputError for other text.
int read_operand_label(JsonView label);

/// Throws InputError with the place of what is wrong.
OpaqueRow read_opaque_row(JsonView object);

/// An object with the keys of a pass and `optimizer`.
RecordedUpdate read_update(JsonView object);

}  // namespace tidemark
