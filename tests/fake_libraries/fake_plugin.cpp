// A CUDA plugin of a machine without a GPU, or (FAKE_INTERFACE_CHANGE) of another version.
#include <stdexcept>

#include "base/error.h"
#include "kernels/cuda_plugin.h"

namespace {

tidemark::Backend* make_backend() {
  throw tidemark::NoDevice("no usable NVIDIA GPU: this plugin is a test's");
}

}  // namespace

extern "C" const tidemark::CudaPlugin tidemark_cuda_plugin;
const tidemark::CudaPlugin tidemark_cuda_plugin{tidemark::backend_version() + FAKE_INTERFACE_CHANGE,
                                                make_backend};
