// Layouts over many GPUs, for people and for programs.
#pragma once

#include <functional>
#include <string>

#include "analysis/layouts/layout_search.h"
#include "cli/commands/formats.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// The command that repeats a layout.
using LayoutCommand = std::function<std::string(const MeshLayout& layout)>;

std::string print_search(const LayoutSearch& search, const LayoutCommand& command, Format format,
                         const Style& style);

}  // namespace tidemark::cli
