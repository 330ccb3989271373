// What the program and its CUDA plugin agree on.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace tidemark {

/// Raised whenever Backend, Call or what they mean changes in a way that sizes do not show.
inline constexpr std::uint32_t backend_interface = 3;

/// A plugin left over from another build sees other types: the interface's number, and the sizes
/// and counts that changes usually change.
constexpr std::uint64_t backend_version() {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const std::uint64_t part :
       {std::uint64_t{backend_interface}, std::uint64_t{sizeof(Call)}, std::uint64_t{sizeof(Array)},
        std::uint64_t{sizeof(Settings)}, std::uint64_t{sizeof(StepState)},
        std::uint64_t{sizeof(Rearrangement)}, std::uint64_t{op_rows.size()},
        std::uint64_t{passes.size()}}) {
    hash = (hash ^ part) * 0x100000001b3u;
  }
  return hash;
}

/// What the plugin exports, as `tidemark_cuda_plugin`: first the version, at the same place in
/// every version.
struct CudaPlugin {
  std::uint64_t version;
  /// Throws NoDevice if there is no usable GPU.
  Backend* (*make_backend)();
};

/// The plugin's file, in the program's folder or an installation's lib/tidemark.
inline constexpr const char* cuda_plugin_file = "libtidemark_cuda.so";

/// False where no NVIDIA driver is installed: a quick answer, without loading the plugin.
bool has_nvidia_driver();

/// load_cuda_backend() of a given file; tests bring their own.
std::unique_ptr<Backend> load_cuda_backend(const std::string& file);

}  // namespace tidemark
