// The public Mesa code quantizes a tensor once for each op that saves it: codes per saved operand
// instead of per storage.
#pragma once

#include <vector>

#include "simulator/graph/joint_graph.h"
#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

/// Without that rule there are none.
class CodesPerUse {
 public:
  CodesPerUse(const Needs& needs, const Plan& plan) {
    if (!plan.quirks.codes_per_use) return;
    first_.reserve(needs.saved.size());
    std::uint32_t next = 0;
    for (const Operands saved : needs.saved) {
      first_.push_back(next);
      next += static_cast<std::uint32_t>(__builtin_popcount(saved));
    }
    codes_.assign(next, no_instance);
  }

  /// The number of the op's first saved operand; the others follow.
  std::uint32_t first(std::size_t op) const { return first_.empty() ? 0 : first_[op]; }
  InstanceId& operator[](std::uint32_t use) { return codes_[use]; }
  InstanceId* find(std::uint32_t use) {
    const bool has_codes = !codes_.empty() && codes_[use] != no_instance;
    return has_codes ? &codes_[use] : nullptr;
  }

 private:
  std::vector<std::uint32_t> first_;  // by op
  std::vector<InstanceId> codes_;     // by saved operand
};

}  // namespace tidemark
