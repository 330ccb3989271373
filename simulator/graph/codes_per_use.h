// The public Mesa code quantizes a tensor once for each op that saves it: codes per saved operand
// instead of per storage.
#pragma once

#include <vector>

#include "simulator/graph/present_values.h"

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
    coded_.resize(next);
  }

  /// The number of the op's first saved operand; the others follow.
  std::uint32_t first(std::size_t op) const { return first_.empty() ? 0 : first_[op]; }
  Coded& operator[](std::uint32_t use) { return coded_[use]; }
  Coded* find(std::uint32_t use) {
    const bool has_codes = !coded_.empty() && coded_[use].codes != no_instance;
    return has_codes ? &coded_[use] : nullptr;
  }

 private:
  std::vector<std::uint32_t> first_;  // by op
  std::vector<Coded> coded_;          // by saved operand
};

}  // namespace tidemark
