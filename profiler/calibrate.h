// Measures a backend, so that predictions rest on it: bandwidth, matrix products, kernels beside
// each other, and every kind of kernel in the steps of small networks.
#pragma once

#include <functional>
#include <optional>

#include "kernels/backend.h"
#include "simulator/cost/device.h"
#include "traces/step_options.h"

namespace tidemark::profiler {

/// In about a second: copy bandwidth, matrix products of each precision, fused attention, the cost
/// of a kernel that does nothing much, and what two kernels on two streams cost each other.
Device measure_device(Backend& backend);

/// What a clock before and after each run adds to its time; 0 for backends whose clocks are free.
Nanoseconds clock_cost(Backend& backend);

/// How far predicted steps are from measured ones, on networks that the curves were not made of.
struct HeldOut {
  std::string step;  ///< "vit 256 × 4, batch 8, fp32"
  Nanoseconds predicted{}, measured{};
};

struct Calibration {
  Device device;
  std::vector<HeldOut> held_out;
  std::vector<std::string> left_out;  ///< steps that the device has no room for
};

/// As measure_device(), and curves from replayed steps of several widths and batches: the median
/// time per kind of run, dtype and work. Steps of sizes that the backend is made for; held-out ones
/// are timed as a whole. With a precision, those in it alone. `progress` is told how many of how
/// many steps are done.
Calibration calibrate(Backend& backend, std::optional<Precision> precision = {},
                      const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace tidemark::profiler
