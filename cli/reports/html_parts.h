// Parts of the HTML report.
#pragma once

#include <string>

#include "analysis/comparison.h"

namespace tidemark::cli {

/// The rows as a table that can be sorted, cautions and refusals below it.
std::string report_table(const Comparison& comparison);

/// What was taken for granted: rules, allocator, device figures, and what is not modelled.
std::string assumptions(const Comparison& comparison);

/// JSON that may stand in a script element: no "</script" ends it early.
std::string script_escaped(std::string_view json);

}  // namespace tidemark::cli
