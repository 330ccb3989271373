// Which ops of a trace cost the same, whatever the device: blocks repeat, and what is true of an op
// of one is true of the op at its place in the next.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/cost/traffic.h"

namespace tidemark {

struct AlikeOps {
  std::vector<std::uint32_t> group;  ///< by op
  std::vector<OpId> first;           ///< by group: the first op in it

  bool operator==(const AlikeOps&) const = default;
};

/// Alike are ops of the same kind, with equal attributes, on operands of equal shapes and dtypes,
/// that give and get the same gradients. Each op is compared with the one at its place in the block
/// before, and is alone if that differs; opaque ops are always alone.
AlikeOps find_alike_ops(const Trace& trace, const Needs& needs, const Traffic& traffic);

}  // namespace tidemark
