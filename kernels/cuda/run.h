// Runs any call on a stream of the GPU.
#pragma once

#include "kernels/cuda/launch.h"

namespace tidemark::cuda {

/// Enqueues what the call is made of.
void run(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
