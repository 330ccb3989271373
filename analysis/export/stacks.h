// What pictures and exports show, before it is drawn: memory over time in columns, and the tree of
// what is alive at the peak.
#pragma once

#include <string>
#include <vector>

#include "analysis/recording/recording.h"

namespace tidemark::exports {

/// Live bytes by category at the moment of most live bytes in each of `columns` equal parts.
std::vector<BytesByCategory> stacked_curve(const Schedule& schedule, const Timeline& timeline,
                                           std::size_t columns);

std::vector<BufferId> alive_at_peak(const Recording& recording);

/// Something alive at the peak, or a group of it: category, then block, then tensor.
struct AliveNode {
  std::string name;
  std::string detail;  ///< of a tensor: the line of code that made it, and what was decided
  Bytes size;
  std::vector<AliveNode> children;  ///< largest first
};

/// The root is "live" with the peak's bytes; the sum of a node's children is the node.
AliveNode alive_tree(const Recording& recording);

/// By tensor: the block of the op that makes it, or of the first op that reads a parameter; "".
std::vector<std::string> blocks_by_tensor(const Trace& trace);

/// "category;block;tensor bytes", a line each: what flame graph programs read.
std::string collapsed_stacks(const Recording& recording);

}  // namespace tidemark::exports
