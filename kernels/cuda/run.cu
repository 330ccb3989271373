// Which launch function runs a call: one table for the ops, one switch for what is no op.
#include "base/error.h"
#include "kernels/cuda/run.h"
#include "kernels/in_step.h"
#include "kernels/rooms.h"
#include "traces/formula.h"

namespace tidemark::cuda {
namespace {

using Kernel = void (*)(const Call&, Launch&);

#include "kernels/kernel_of.inc"

}  // namespace

void run(const Call& call, Launch& launch) {
  const Kernel kernel = kernel_of(call);
  CHECK(kernel != nullptr);
  writes_codes(call) ? kernel(in_step(call, launch.state), launch) : kernel(call, launch);
}

}  // namespace tidemark::cuda
