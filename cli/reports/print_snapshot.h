// A memory snapshot for people, for programs and for flame graphs.
#pragma once

#include <string>

#include "cli/text/terminal.h"
#include "importers/snapshot_timeline.h"

namespace tidemark::cli {

struct SnapshotFacts {
  std::string file;
  const importers::MemorySnapshot& snapshot;
  const importers::SnapshotTimeline& made;
  importers::SnapshotReport report;
};

/// The `top` largest stacks alive at the peak.
std::string snapshot_table(const SnapshotFacts& facts, const Style& style, std::size_t top);
/// All of them, each with all of its frames.
std::string snapshot_json(const SnapshotFacts& facts);
/// "outermost;…;innermost bytes", a line for each stack alive at the peak.
std::string snapshot_stacks(const SnapshotFacts& facts);

}  // namespace tidemark::cli
