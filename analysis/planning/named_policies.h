// What JAX and Megatron let people ask of every block by name.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

struct NamedPolicy {
  std::string form;              ///< policies of one form are choices of which the best is shown
  std::string paste;             ///< what to write
  std::vector<bool> recomputed;  ///< by op: what it makes is computed again
};

/// Those that mean something in the trace's blocks, by form.
std::vector<NamedPolicy> named_policies(const Trace& trace);

}  // namespace tidemark
