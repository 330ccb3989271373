// `tidemark explain --graph FILE`: the joint graph of a block, an op, a tensor or all.
#pragma once

#include "cli/commands/commands.h"

namespace tidemark::cli {

/// Writes the file that --graph names. UsageError for options that mean nothing beside it.
Result write_graph(const Options& options);

}  // namespace tidemark::cli
