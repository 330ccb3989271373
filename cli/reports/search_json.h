// A search as one JSON document.
#pragma once

#include "cli/reports/print_search.h"

namespace tidemark::cli {

std::string search_json(const LayoutSearch& search, const LayoutCommand& command);

}  // namespace tidemark::cli
