// Which ops run again, and which couplings are undone, to bring back what the plan let go.
#pragma once

#include <string>
#include <vector>

#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

struct Recovery {
  std::vector<bool> reruns;      ///< per op: its region's recovery runs it again
  std::vector<bool> inverts;     ///< per op: its region's recovery recovers input 0 from output 0
  std::vector<bool> reads_kept;  ///< per storage: recovery reads what the forward pass has left
  std::vector<std::uint32_t> uses;   ///< per storage: reads after the forward pass, by backward ops
                                     ///< and by recovery
  std::vector<std::string> defects;  ///< what is needed but nothing provides
};

/// What only recovery reads, and recovery itself makes, need not stay after the forward pass.
bool is_made_again(const Needs& needs, const Recovery& recovery, TensorId storage);

/// One pass over the regions in the order of their recovery. In each region it collects what the
/// gradients need and what the recovery of earlier regions will need, and marks each producer once.
Recovery derive_recovery(const Trace& trace, const Plan& plan, const Needs& needs);

}  // namespace tidemark
