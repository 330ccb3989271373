// Rates of a device, fitted to steps that somebody has timed on it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "simulator/cost/device.h"

namespace tidemark {

/// How long a device takes for a step, by the step's number.
using StepPredictor = std::function<Nanoseconds(const Device& device, std::size_t step)>;

struct RateFit {
  /// What is fitted: what large matrix products, memory, fused attention and the host reach.
  struct Rate {
    std::string_view name;  ///< "matrix products"
    double factor;          ///< of the device's own
  };
  struct Step {
    Nanoseconds before, fitted;
    Nanoseconds left_out;  ///< by a fit to all other steps; `before` where there are none
  };
  Device device;
  std::vector<Rate> rates;
  std::vector<Step> steps;
};

/// The rates with which predictions come nearest to what was measured, by the squares of their
/// relative errors; of rates that do so alike those nearest to the device's own. A device with
/// curves has measured times of kernels instead of rates: it must have none.
RateFit fit_rates(const Device& device, const std::vector<Nanoseconds>& measured,
                  const StepPredictor& predict);

}  // namespace tidemark
