// What is added to a recorded run after its process has ended: the file may have been cut off in
// the middle of a chunk, or not been begun at all.
#pragma once

#include <string>
#include <vector>

namespace tidemark::importers {

struct RunAddition {
  std::vector<std::string> notes = {};
  std::string marks_file = {};     ///< rows of MarkRow, or ""
  std::string snapshot_file = {};  ///< a pickle of PyTorch, or ""
};

/// Appends; a file that is not there is begun. Returns "" or, with the file as it was, the problem.
std::string append_to_run(const std::string& path, const RunAddition& addition);

/// Does the file hold anything that happened, beyond notes?
bool has_records(const std::string& path);

}  // namespace tidemark::importers
