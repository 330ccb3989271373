// Which phase what ran belongs to, by the ranges (NVTX) in which it was launched.
#pragma once

#include <optional>
#include <string_view>

#include "importers/nsys_tables.h"

namespace tidemark::importers {

/// What a range says about itself: "forward", "loss.backward()", "Optimizer.step#AdamW.step",
/// "autograd::engine::evaluate_function: MmBackward0". None: another name.
std::optional<Task> phase_of(std::string_view range);

/// Sets the phase of each run that was launched within a range that says one.
void set_phases(SqliteFile& file, NsysTables& tables);

}  // namespace tidemark::importers
