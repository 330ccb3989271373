// What the window gives back to the command line. Only in programs that have one.
#pragma once

#include "cli/commands/options.h"
#include "gui/view.h"

namespace tidemark::cli {

/// What the window is asked for. Throws UsageError and InputError.
gui::ViewRequest view_request(const Options& options);

/// The call that shows these inputs; `options` are those of the call that began.
std::string view_command_line(Options options, const gui::WhatIf& what_if);

}  // namespace tidemark::cli
