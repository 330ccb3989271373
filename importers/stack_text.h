// Stacks of recordings for people: of dozens of frames, most belong to the framework.
#pragma once

#include <string>
#include <vector>

#include "importers/memory_snapshot.h"

namespace tidemark::importers {

/// Names stacks, each of them once.
class SiteNames {
 public:
  explicit SiteNames(const MemorySnapshot& snapshot)
      : snapshot_(snapshot), names_(snapshot.stack_ends.size()) {}

  /// "linear ← forward (model.py:31)"
  const std::string& name(StackId stack);
  /// All frames, innermost first: "linear (functional.py:125) ← forward (…) ← …".
  std::string whole(StackId stack) const;

 private:
  const MemorySnapshot& snapshot_;
  std::vector<std::string> names_;
};

/// "forward (model.py:31)"
std::string frame_text(const Frame& frame);

}  // namespace tidemark::importers
