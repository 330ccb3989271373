// Which runs there are is known, in which order they meet is not.
#include "simulator/planner/shared_runs.h"

#include <cmath>
#include <map>
#include <utility>

#include "simulator/planner/exchange_runs.h"

namespace tidemark {
namespace {

constexpr int steps_of_shares = 256, steps_of_savings = 32;

class Grouped {
 public:
  void add(double sms, double bandwidth, std::int64_t ns) {
    if (ns > 0) ns_[{step_of(sms), step_of(bandwidth)}] += ns;
  }

  std::vector<SharedRuns> groups() const {
    std::vector<SharedRuns> found;
    for (const auto& [shares, ns] : ns_)
      found.push_back({static_cast<double>(shares.first) / steps_of_shares,
                       static_cast<double>(shares.second) / steps_of_shares, ns});
    return found;
  }

 private:
  static int step_of(double share) { return static_cast<int>(std::floor(share * steps_of_shares)); }

  std::map<std::pair<int, int>, std::int64_t> ns_;
};

}  // namespace

// As survey.cpp has it: nothing is recovered beside an update behind the backward, nor beside
// forwards.
std::vector<SharedRuns> runs_of_backward(const Trace& trace, const Schedule& schedule,
                                         const CostModel& costs, std::int64_t like_second) {
  Grouped grouped;
  std::int64_t pass = 0;
  bool in_backward = false;
  for (const Step& step : schedule.steps) {
    const Run* run = std::get_if<Run>(&step);
    if (!run) continue;
    if (is_of_forward(run->task)) {
      pass += in_backward;
      in_backward = false;
      continue;
    }
    in_backward = true;
    if (run->stream != StreamId::Compute) continue;
    if (run->op == no_op && !trace.step.update_in_backward && !is_of_exchange(*run)) continue;
    const Cost cost = costs.of(schedule, *run);
    grouped.add(cost.sm_share, cost.memory_share,
                cost.time.count() * (pass == 1 ? like_second : 1));
  }
  return grouped.groups();
}

std::vector<SharedRuns> runs_of(const std::vector<Load>& loads, const std::vector<bool>& run) {
  Grouped grouped;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto ns = static_cast<double>(loads[i][Resource::Time]);
    if (run[i] && ns > 0)
      grouped.add(static_cast<double>(loads[i][Resource::Sms]) / ns,
                  static_cast<double>(loads[i][Resource::Bandwidth]) / ns,
                  loads[i][Resource::Time]);
  }
  return grouped.groups();
}

double PricesBeside::saved_by(const SharedRuns& run) const {
  double most = 0;
  for (std::size_t j = 0; j < gradients.size(); ++j)
    most = std::max(most, saved_beside(run, gradients[j]) - prices[j]);
  return most;
}

std::int64_t PricesBeside::saved_within() const {
  double sum = 0;
  for (std::size_t j = 0; j < gradients.size(); ++j)
    sum += prices[j] * static_cast<double>(gradients[j].ns);
  return static_cast<std::int64_t>(std::ceil(sum));
}

namespace {

// What is left of each gradient when recoveries keep so much of what they save: runs that bandwidth
// limits and others, and small ones at least what they leave of the device.
std::vector<double> prices_for(double of_memory, double of_sms,
                               const std::vector<SharedRuns>& gradients,
                               const std::vector<SharedRuns>& recovered) {
  std::vector<double> prices(gradients.size());
  for (const SharedRuns& run : recovered) {
    const double kept = std::max(run.bandwidth > run.sms ? of_memory : of_sms,
                                 1 - std::max(run.sms, run.bandwidth));
    for (std::size_t j = 0; j < gradients.size(); ++j)
      prices[j] = std::max(prices[j], saved_beside(run, gradients[j]) - kept);
  }
  return prices;
}

}  // namespace

PricesBeside best_prices(std::vector<SharedRuns> gradients,
                         const std::vector<SharedRuns>& recovered) {
  PricesBeside best{std::move(gradients)}, tried = best;
  double least = 1e300;  // saved in all
  for (int memory = 0; memory <= steps_of_savings; ++memory)
    for (int sms = 0; sms <= steps_of_savings; ++sms) {
      tried.prices =
          prices_for(static_cast<double>(memory) / steps_of_savings,
                     static_cast<double>(sms) / steps_of_savings, tried.gradients, recovered);
      auto saved = static_cast<double>(tried.saved_within());
      for (const SharedRuns& run : recovered)
        saved += tried.saved_by(run) * static_cast<double>(run.ns);
      if (saved < least) least = saved, best = tried;
    }
  return best;
}

}  // namespace tidemark
