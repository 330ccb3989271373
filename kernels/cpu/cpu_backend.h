// The CPU backend with what its tests exchange.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/workspace.h"

namespace tidemark {

struct CpuBackendOptions {
  cpu::Kernel run;  ///< executes a call: cpu::run, or what a test puts in its place
  /// For tests of what happens then: the allocation with this number, from 1, fails. 0 = none.
  std::size_t failing_allocation = 0;
};

std::unique_ptr<Backend> make_cpu_backend(const CpuBackendOptions& options);

}  // namespace tidemark
