// The rows of a search for programs.
#pragma once

#include "cli/reports/listing.h"
#include "cli/reports/print_search.h"

namespace tidemark::cli {

/// All numbers of all layouts found, with the command of each and those of other programs.
Listing search_listing(const LayoutSearch& search, const LayoutCommand& command);

/// "fsdp2", "" where there is nothing to share.
std::string sharding_text(const LayoutRequest& request, const MeshLayout& layout);
/// "interleaved:v=2", "" of one stage.
std::string schedule_text(const LayoutRequest& request, const MeshLayout& layout);

}  // namespace tidemark::cli
