// Runs one call on the CPU: finds its kernel by pass and op kind, and calls it.
#include "base/error.h"
#include "kernels/cpu/workspace.h"
#include "kernels/in_step.h"
#include "kernels/rooms.h"
#include "traces/formula.h"

namespace tidemark::cpu {

#include "kernels/kernel_of.inc"

void run(const Call& call, Workspace& workspace) {
  const Kernel kernel = kernel_of(call);
  CHECK(kernel != nullptr);
  writes_codes(call) ? kernel(in_step(call, workspace.state), workspace) : kernel(call, workspace);
}

}  // namespace tidemark::cpu
