// What each stream of the CUDA backend owns, and how errors of the toolkit become InputErrors.
// Only for the plugin's own sources: it includes the toolkit's headers.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "kernels/cuda/gemm.h"

namespace tidemark::cuda {

/// InputError "what: cudaErrorX (its text)" unless the call succeeded.
void check(cudaError_t result, std::string_view what);
void check(cublasStatus_t result, std::string_view what);

/// The device has no room for it.
struct NoRoom : InputError {
  using InputError::InputError;
};

/// Device memory, freed at the end; what fails then is no longer of interest.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  explicit DeviceBlock(std::int64_t bytes);  ///< NoRoom
  ~DeviceBlock() { cudaFree(data_); }
  DeviceBlock(DeviceBlock&& other) noexcept { *this = std::move(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class GemmCache;

struct StreamContext {
  StreamContext(cublasLtHandle_t blas_handle, std::int64_t blas_workspace, GemmCache& products)
      : blas(blas_handle), blas_scratch(blas_workspace), gemms(&products) {}
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

  Bytes taken() const;
  /// Frees what scratch has outgrown; no kernel of the stream may be queued any more.
  void free_outgrown() { outgrown.clear(); }

  cublasLtHandle_t blas;
  DeviceBlock blas_scratch;
  std::array<DeviceBlock, 8> pieces;
  std::vector<DeviceBlock> outgrown;
  GemmCache* gemms;  ///< of the backend, and of all its streams
};

}  // namespace tidemark::cuda
