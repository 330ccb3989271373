// Makes the CPU, CUDA or null backend, and measures a device where there is one to measure.
#include "profiler/backends.h"

#include <algorithm>

#include "base/names.h"
#include "profiler/calibrate.h"
#include "profiler/null_backend.h"
#include "profiler/observed_backend.h"
#include "simulator/cost/usual_device.h"

namespace tidemark::profiler {
namespace {

using Note = std::string&;
using Made = std::unique_ptr<Backend>;

constexpr std::array rows = {
    BackendRow{"cpu", [](Note) -> Made { return make_cpu_backend(); }},
    BackendRow{"cuda", [](Note note) -> Made { return load_observed_cuda_backend(note); }},
    BackendRow{"null", [](Note) -> Made { return std::make_unique<NullBackend>(); }}};

}  // namespace

std::span<const BackendRow> backends() { return rows; }

std::unique_ptr<Backend> find_backend(std::string_view name, std::string& note) {
  const auto* row = std::ranges::find(rows, name, &BackendRow::name);
  if (row == rows.end()) throw UsageError(unknown_name("backend", name, names_of(rows)));
  return row->make(note);
}

std::unique_ptr<Backend> find_unwatched_backend(std::string_view name) {
  std::string note;
  return name == "cuda" ? load_cuda_backend() : find_backend(name, note);
}

Device device_of(Backend& backend) {
  return backend.ground() == Ground::Addresses ? find_device(std::string(usual_device))
                                               : measure_device(backend);
}

}  // namespace tidemark::profiler
