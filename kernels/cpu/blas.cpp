// Loads libopenblas by dlopen, told to start no threads, and finds cblas_sgemm in it.
#include "kernels/cpu/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"

namespace tidemark::cpu {
namespace {

constexpr const char* library = "libopenblas.so.0";

Sgemm load() {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);  // read as the library is loaded: no threads of its own
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = handle ? dlsym(handle, "cblas_sgemm") : nullptr;
  if (!found)
    throw InputError(
        fmt::format("{} is missing, which multiplies matrices on the CPU (on Debian: "
                    "apt-get install libopenblas0)",
                    library));
  return reinterpret_cast<Sgemm>(found);
}

}  // namespace

Sgemm sgemm() {
  static const Sgemm function = load();
  return function;
}

}  // namespace tidemark::cpu
