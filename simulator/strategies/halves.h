// The two residual halves of a transformer block, F and G, which a coupling makes reversible.
#pragma once

#include <optional>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// [begin, end).
struct OpRange {
  std::size_t begin = 0, end = 0;
};

/// The ops of one half of a block; the residual add divides them: what follows it is the norm of a
/// post-norm block.
struct Half {
  OpRange ops;
  std::size_t add = 0;
};

/// Nothing, if the part does not have exactly one residual add that can be undone.
std::optional<Half> half_of(const Trace& trace, const Block& block, Part part);

/// By block: has it two halves, and so have all blocks of its stack?
std::vector<bool> can_be_coupled(const Trace& trace);

}  // namespace tidemark
