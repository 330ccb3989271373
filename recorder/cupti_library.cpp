// Two copies of CUPTI in one process do not work, so the one that is there already comes first.
#include "recorder/cupti_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace tidemark::recorder {
namespace {

namespace cupti = profiler::cupti;

void* open_first(std::string& file) {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"})
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return file = name, handle;
  const char* const chosen = std::getenv("TIDEMARK_CUPTI");
  if (chosen != nullptr && *chosen != '\0')
    return file = chosen, dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"})
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return file = name, handle;
  return nullptr;
}

template <typename F>
bool find(void* handle, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  return function != nullptr;
}

bool find_all(void* handle, cupti::Functions& f) {
  return find(handle, f.GetVersion, "cuptiGetVersion") &&
         find(handle, f.GetResultString, "cuptiGetResultString") &&
         find(handle, f.GetTimestamp, "cuptiGetTimestamp") &&
         find(handle, f.ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks") &&
         find(handle, f.ActivityEnable, "cuptiActivityEnable") &&
         find(handle, f.ActivityDisable, "cuptiActivityDisable") &&
         find(handle, f.ActivityGetNextRecord, "cuptiActivityGetNextRecord") &&
         find(handle, f.ActivityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords") &&
         find(handle, f.ActivityFlushAll, "cuptiActivityFlushAll") &&
         find(handle, f.ActivitySetAttribute, "cuptiActivitySetAttribute");
}

}  // namespace

std::string CuptiLibrary::text_of(cupti::Result result) const {
  const char* text = nullptr;
  functions.GetResultString(result, &text);
  return text != nullptr ? text : "CUPTI error " + std::to_string(result);
}

bool load_cupti(CuptiLibrary& library, std::string& problem) {
  const char* const chosen = std::getenv("TIDEMARK_CUPTI");
  if (chosen != nullptr && std::string_view(chosen) == "off")
    return problem = "TIDEMARK_CUPTI says off", false;
  std::string file;
  void* const handle = open_first(file);
  if (handle == nullptr) {
    problem = std::string("CUPTI cannot be loaded: ") + dlerror() +
              "; it comes with the CUDA toolkit and with PyTorch, and TIDEMARK_CUPTI may name it";
    return false;
  }
  if (!find_all(handle, library.functions))
    return problem = file + " lacks functions of CUPTI of CUDA 12 and 13", false;
  library.functions.GetVersion(&library.version);
  if (cupti::is_known(library.version)) return true;
  problem = file + " is CUPTI version " + std::to_string(library.version) +
            "; the records of CUDA 12 and 13 are known";
  return false;
}

}  // namespace tidemark::recorder
