// What would lower a peak, for people and for programs.
#pragma once

#include <string>

#include "analysis/planning/lever_table.h"
#include "cli/commands/formats.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// A table, JSON, CSV or Markdown: all levers that lower the peak in this measure, best first.
std::string print_levers(const LeverTable& table, Measure measure, Format format,
                         const Style& style);

}  // namespace tidemark::cli
