// Scratch memory is new and exact for each call, and products run on the plain GEMM kernel.
#include "tests/emulation/backend.h"

#include "kernels/cuda/plain_gemm.cuh"

namespace tidemark::cuda {
void check_launch(const char*) {}  // the emulation throws by itself

// Exactly as much as asked for, in new memory each time: reading beyond it, and reading what an
// earlier call left there, are then errors that a sanitizer sees.
std::byte* scratch(Launch& launch, std::int64_t bytes, std::size_t slot) {
  std::vector<std::byte>& piece = launch.context->scratch.at(slot);
  piece = std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xff});
  return piece.data();
}

// cuBLASLt's part is played by the kernel for what it refuses.
void gemm(Launch& launch, const Gemm& g) { plain_gemm(launch, g); }

}  // namespace tidemark::cuda
