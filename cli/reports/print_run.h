// A recorded run for people and for programs: what took its time, and whose its memory was.
#pragma once

#include <string>

#include "cli/text/terminal.h"
#include "importers/run_timeline.h"

namespace tidemark::cli {

struct RunFacts {
  std::string file;
  const importers::RunFile& run;
  const importers::RunTimeline& made;
};

/// The `top` rows that took most time; the memory of PyTorch is snapshot_table()'s.
std::string run_table(const RunFacts& facts, const Style& style, std::size_t top);
/// All of them.
std::string run_json(const RunFacts& facts);

}  // namespace tidemark::cli
