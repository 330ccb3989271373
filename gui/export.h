// Files that the view writes, by their ending.
#pragma once

#include "gui/opened.h"

namespace tidemark {

/// .svg, .chrome.json, .timeline.json or .timeline.json.zst; UsageError for any other ending.
void write_export(const std::string& path, const Opened& opened);

}  // namespace tidemark
