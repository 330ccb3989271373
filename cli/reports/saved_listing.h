// The saved tensors of a step in groups, as one would find them in an autograd graph.
#pragma once

#include <string>

#include "cli/commands/formats.h"
#include "cli/text/terminal.h"
#include "traces/trace.h"

namespace tidemark::cli {

std::string print_saved_groups(const Trace& trace, Format format, const Style& style);

}  // namespace tidemark::cli
