// Files that the view writes, by their ending.
#pragma once

#include "gui/opened.h"

namespace tidemark::gui {

/// "tidemark-vit-b-16-checkpoint-every-2-batch-64": model, strategy and batch in letters that any
/// file system takes.
std::string file_stem(const Recording& recording);

/// The path, or one beside it that is free: "step.png", "step-2.png", "step-3.png".
std::string free_path(const std::string& path);

/// .svg, .chrome.json, .timeline.json or .timeline.json.zst; UsageError for any other ending.
void write_export(const std::string& path, const Opened& opened);

}  // namespace tidemark::gui
