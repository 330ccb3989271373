// Finds and opens the CUDA plugin. It is loaded on demand, because the libraries that it needs take
// up to a second to load, and most machines that plan have no GPU at all.
#include "kernels/cuda_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* remedy =
    "build with a CUDA toolkit (cmake --preset cuda), or set TIDEMARK_CUDA_PLUGIN to the plugin";

/// The first of the usual places that has one; else the first, for the message.
std::string usual_file() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path beside = program / cuda_plugin_file;
  const fs::path installed = program.parent_path() / "lib" / "tidemark" / cuda_plugin_file;
  return !fs::exists(beside, error) && fs::exists(installed, error) ? installed : beside;
}

/// A plugin's exceptions are caught by the program, so both must use one C++ library. The program
/// that is packed for other machines has its own inside.
bool has_own_runtime() { return dlsym(RTLD_DEFAULT, "__cxa_throw") == nullptr; }

}  // namespace

std::unique_ptr<Backend> load_cuda_backend(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    throw NoDevice(fmt::format("no CUDA plugin at {}: {}", file, remedy));
  }
  if (has_own_runtime()) {
    throw NoDevice(
        "this program was packed with a C++ library of its own and takes no CUDA plugin (build "
        "Tidemark on the machine with the GPU: make build)");
  }
  // Never closed: a backend's code, and what its libraries registered, must outlive every caller.
  void* const library = dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw NoDevice(fmt::format("the CUDA plugin cannot be loaded: {}; {}", dlerror(), remedy));
  }
  const auto* const plugin = static_cast<const CudaPlugin*>(dlsym(library, "tidemark_cuda_plugin"));
  if (plugin == nullptr) {
    throw NoDevice(fmt::format("{} is no CUDA plugin of Tidemark; {}", file, remedy));
  }
  if (plugin->version != backend_version()) {
    throw NoDevice(
        fmt::format("{} belongs to another version of Tidemark ({:016x}, this is "
                    "{:016x}): build it again together with the program",
                    file, plugin->version, backend_version()));
  }
  return std::unique_ptr<Backend>(plugin->make_backend());
}

bool has_nvidia_driver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

std::unique_ptr<Backend> load_cuda_backend() {
  const char* const chosen = std::getenv("TIDEMARK_CUDA_PLUGIN");
  const std::string file = chosen != nullptr && *chosen != '\0' ? chosen : usual_file();
  std::error_code error;
  if (fs::exists(file, error) && !has_nvidia_driver()) {
    throw NoDevice("no usable NVIDIA GPU: no driver is installed (libcuda.so.1)");
  }
  return load_cuda_backend(file);
}

}  // namespace tidemark
