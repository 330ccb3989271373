#include "profiler/backends.h"

#include "profiler/calibrate.h"
#include "profiler/null_backend.h"
#include "profiler/observed_backend.h"
#include "traces/error.h"

namespace tidemark {

std::unique_ptr<Backend> find_backend(std::string_view name, std::string& note) {
  if (name == "cpu") return make_cpu_backend();
  if (name == "cuda") return load_observed_cuda_backend(note);
  if (name == "null") return std::make_unique<NullBackend>();
  throw UsageError(unknown_name("backend", name, {"cpu", "cuda", "null"}));
}

Device device_of(Backend& backend) {
  return backend.name() == "null" ? find_device("a100-80gb") : measure_device(backend);
}

}  // namespace tidemark
