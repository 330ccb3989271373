// Scratch memory of streams, and errors.
#include <string>

#include "base/error.h"
#include "kernels/cuda/context.h"

namespace tidemark::cuda {

void check(cudaError_t result, std::string_view what) {
  if (result == cudaSuccess) return;
  throw InputError(std::string(what) + ": " + cudaGetErrorName(result) + " (" +
                   cudaGetErrorString(result) + ")");
}

void check(cublasStatus_t result, std::string_view what) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  throw InputError(std::string(what) + ": " + cublasLtGetStatusName(result) + " (" +
                   cublasLtGetStatusString(result) + ")");
}

void check_launch(const char* kernel) {
  const cudaError_t result = cudaGetLastError();
  if (result != cudaSuccess) check(result, std::string("launching ") + kernel);
}

DeviceBlock::DeviceBlock(std::int64_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  const std::string what = "cannot allocate " + to_text(Bytes{bytes}) + " of GPU memory";
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());  // it is told once, here
  if (result == cudaErrorMemoryAllocation)
    throw NoRoom(what + ": " + cudaGetErrorName(result) + " (" + cudaGetErrorString(result) + ")");
  check(result, what);
  data_ = static_cast<std::byte*>(data);
}

Bytes StreamContext::taken() const {
  Bytes sum{blas_scratch.bytes()};
  for (const DeviceBlock& piece : pieces) sum += Bytes{piece.bytes()};
  for (const DeviceBlock& piece : outgrown) sum += Bytes{piece.bytes()};
  return sum;
}

std::byte* scratch(Launch& launch, std::int64_t bytes, std::size_t slot) {
  StreamContext& context = *launch.context;
  DeviceBlock& piece = context.pieces[slot];
  if (piece.bytes() < bytes) {
    // Kernels that read the old piece may still be queued: it is freed after the step. Half as
    // much again, so that slowly growing requests do not leave a block each.
    DeviceBlock larger(std::max(bytes, piece.bytes() + piece.bytes() / 2));
    if (piece.data() != nullptr) context.outgrown.push_back(std::move(piece));
    piece = std::move(larger);
  }
  return piece.data();
}

}  // namespace tidemark::cuda
