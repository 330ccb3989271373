// Two streams side by side: what recovery saves where it runs beside gradients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/cost/cost_model.h"
#include "simulator/planner/load.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Runs of equal shares, rounded down: what they save is no less than with their own.
struct SharedRuns {
  double sms = 0, bandwidth = 0;
  std::int64_t ns = 0;
};

/// Per ns of either. Two runs go at one rate x, the largest at which their shares stay within the
/// device's; in t ns both are done with x · t, for which one after the other takes 2x · t: they
/// save (2x − 1) / x for each ns of a run.
inline double saved_beside(const SharedRuns& a, const SharedRuns& b) {
  return 2 - std::max({1.0, a.sms + b.sms, a.bandwidth + b.bandwidth});
}

/// Of a schedule that recovers nothing: all that recovery could run beside. `like_second`: so many
/// passes are like the second.
std::vector<SharedRuns> runs_of_backward(const Trace& trace, const Schedule& schedule,
                                         const CostModel& costs, std::int64_t like_second);

/// Those ops that run, by their loads.
std::vector<SharedRuns> runs_of(const std::vector<Load>& loads, const std::vector<bool>& run);

/// Prices of time beside gradients: for a ns of each of them, what recovery there saves is counted
/// up to that; only what it saves beyond is its own.
struct PricesBeside {
  std::vector<SharedRuns> gradients;
  std::vector<double> prices = {};  ///< by gradients, none below 0

  /// Of a ns of such a run, beside whichever gradient is best for it.
  double saved_by(const SharedRuns& run) const;
  /// Whatever is recovered: ns that are saved within the prices.
  std::int64_t saved_within() const;
};

/// Those for which the bound is highest, or nearly, if just this is recovered.
PricesBeside best_prices(std::vector<SharedRuns> gradients,
                         const std::vector<SharedRuns>& recovered);

}  // namespace tidemark
