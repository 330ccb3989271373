// Loads libopenblas by dlopen, told to start no threads and which kernels to take, and finds
// cblas_sgemm in it.
#include "kernels/cpu/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"

namespace tidemark::cpu {
namespace {

constexpr const char* library = "libopenblas.so.0";

// The name that OPENBLAS_CORETYPE has for the kernels of the widest instructions that this
// processor has; null where OpenBLAS is left to find out. It goes by a list of the processors of
// its day and takes younger ones for a Prescott of 2004 (0.3.21 on a Xeon of 2023: a third of the
// rate).
const char* core_type() {
#if defined(__x86_64__)
  const bool is_skylake_x =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (is_skylake_x) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

// Both variables are read as the library is loaded.
Sgemm load() {
  setenv("OPENBLAS_NUM_THREADS", "1", 1);  // no threads of its own
  if (const char* const core = core_type()) setenv("OPENBLAS_CORETYPE", core, 0);  // a user's stays
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
