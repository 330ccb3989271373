// Which blocks a plan wraps in torch.utils.checkpoint, and which calls of each stay.
#pragma once

#include <string>
#include <vector>

#include "simulator/planner/planner.h"

namespace tidemark {

struct WrappedBlock {
  std::string name;         ///< of the trace's block
  bool is_wrapped = false;  ///< else it keeps all that it saves
  std::vector<OpId> saved;  ///< whose outputs stay; empty: all of it runs again

  bool operator==(const WrappedBlock&) const = default;
};

/// Of a point of a planner whose form is Blocks or Policy: all blocks, in order.
std::vector<WrappedBlock> wrapped_blocks(const Planner& planner, std::size_t point);

/// A call that stays: the n-th of its group in the block, from 0.
struct SavedCall {
  std::string_view group;
  std::size_t number = 0;
  std::int64_t width = 0;  ///< of what a product gives, so that the wrong one is noticed; else 0

  bool operator==(const SavedCall&) const = default;
};
std::vector<SavedCall> saved_calls(const Trace& trace, const Block& block,
                                   const std::vector<OpId>& saved);

}  // namespace tidemark
