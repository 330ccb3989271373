// The backends by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.h"
#include "simulator/cost/device.h"

namespace tidemark::profiler {

struct BackendRow {
  std::string_view name;
  std::unique_ptr<Backend> (*make)(std::string& note);
};
std::span<const BackendRow> backends();

/// "cpu", "cuda" or "null". UsageError for other names, NoDevice where there is no GPU. `note` says
/// why CUDA's times are not CUPTI's, if they are not.
std::unique_ptr<Backend> find_backend(std::string_view name, std::string& note);

/// The same without CUPTI, for measuring: times are those of the backend's own clocks.
std::unique_ptr<Backend> find_unwatched_backend(std::string_view name);

/// The hardware of a backend as a device for predictions: measured now, in about a second. The null
/// backend, which has none, is predicted as the default device.
Device device_of(Backend& backend);

}  // namespace tidemark::profiler
