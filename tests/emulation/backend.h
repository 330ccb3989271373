// What the CUDA launch functions get from their backend, for the emulation: scratch memory,
// products by plain loops.
#pragma once

#include <vector>

#include "kernels/cuda/launch.h"

namespace tidemark::cuda {

struct StreamContext {
  std::array<std::vector<std::byte>, 8> scratch;
};

}  // namespace tidemark::cuda

namespace tidemark::emulation {

struct Stream {
  Stream() {
    launch.context = &context, launch.processors = 2;
    launch.shared_memory = 64 << 10;  // of compute capability 7.5, the least
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cuda::StreamContext context;
  cuda::Launch launch;
};

}  // namespace tidemark::emulation
