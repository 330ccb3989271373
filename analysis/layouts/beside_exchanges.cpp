// What is active together progresses at the rate 1 / max(1, Σ SM shares, Σ bandwidth shares), and
// exchanges whose links cannot carry them all by so much more slowly (simulate.cpp). A run that
// would need 1 + e of the SMs or of the bandwidth beside an exchange takes 1 + e times as long, and
// what is exchanged meanwhile, too: to hide x ns of an exchange costs e · x ns. No simulation does
// better than to hide exchanges behind the runs that they slow down least:
//   e        0      0.02           0.15                        all runs are done
//   runs     ├──────┼──────────────┼───────────────────────────┤
//   exchange ├──────────────────────────────┤  costs 0.02 and 0.15 of what it lies beside
// For the largest e of those, θ, count of a run's progress min(1, 1 + e − θ), and of an exchange's
// θ times its link's share. At no time is more than 1 counted per ns, and all that is counted is
// what least_beside() returns.
#include "analysis/layouts/beside_exchanges.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

double excess(const DeviceUse& run, const DeviceUse& exchange) {
  return std::max({0.0, run.sms + exchange.sms - 1, run.memory + exchange.memory - 1});
}

}  // namespace

std::vector<DeviceUse> taken_together(std::vector<DeviceUse> runs) {
  std::ranges::sort(runs, {}, [](const DeviceUse& run) { return std::pair(run.sms, run.memory); });
  std::vector<DeviceUse> together;
  for (const DeviceUse& run : runs) {
    if (together.empty() || together.back().sms != run.sms || together.back().memory != run.memory)
      together.push_back({run.sms, run.memory, 0});
    together.back().ns += run.ns;
  }
  return together;
}

double least_beside(const std::vector<DeviceUse>& runs, const DeviceUse& exchange) {
  std::vector<std::pair<double, double>> hides;  // excess, and how long
  double all = 0;
  for (const DeviceUse& run : runs) {
    hides.emplace_back(excess(run, exchange), run.ns);
    all += run.ns;
  }
  std::ranges::sort(hides);
  double left = exchange.ns;
  for (const auto& [slower, ns] : hides) {
    const double hidden = std::min(left, ns);
    all += slower * hidden;
    left -= hidden;
  }
  return all + left;
}

}  // namespace tidemark
