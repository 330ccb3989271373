// What a launch function of the CUDA plugin gets beside its call. Needs no header of the toolkit,
// so that tests compile the same launch functions for the emulation in tests/emulation/.
#pragma once

#include "kernels/call.h"

struct CUstream_st;  // *cudaStream_t

namespace tidemark::cuda {

/// What belongs to one stream of the backend: the library handles and the scratch memory.
struct StreamContext;

struct Launch {
  CUstream_st* stream = nullptr;          ///< cudaStream_t: all that a kernel does is enqueued here
  StepState state;                        ///< of the step that runs
  int processors = 1;                     ///< multiprocessors of the device
  std::int64_t shared_memory = 48 << 10;  ///< most bytes of it that a block may ask for
  StreamContext* context = nullptr;
};

/// Uninitialized memory of the device, aligned to 256 bytes, for the kernels of this stream alone;
/// what a call wrote there, the next call on the stream overwrites. `slot` 0 to 7 gives up to eight
/// pieces that live side by side. Growing must not disturb kernels that are still queued.
std::byte* scratch(Launch& launch, std::int64_t bytes, std::size_t slot = 0);

/// InputError with the reason if the launch before it failed; `kernel` names what was launched.
void check_launch(const char* kernel);

}  // namespace tidemark::cuda
