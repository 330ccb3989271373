// The Lagrangian of the memory that must be there at one moment. For every price λ >= 0 of a byte,
//   time(plan) >= time(plan) + λ · (bytes there − B) >= kept time + Σ min over local plans
//                 (time + λ · kept) − λ · (B − what is there whatever the plan)
// for each plan that stays within B. It falls apart into stages, and the minimum over all local
// plans of a stage is one of the corners of its hull (proposals.h), so no plan is missed. The
// moments: while each stage's forward runs, and while its gradients do, what the stages before it
// keep is there. In the forward, what is held to its end is there in any case.
#include <algorithm>
#include <set>

#include "simulator/planner/planner.h"

namespace tidemark {
namespace {

struct Corner {
  double kept, time;
};
using Hull = std::vector<Corner>;

// min over the corners of time + price · kept.
double cheapest(const Hull& corners, double price) {
  double best = corners.front().time + price * corners.front().kept;
  for (const Corner& corner : corners) best = std::min(best, corner.time + price * corner.kept);
  return best;
}

std::set<double> prices_of(const std::vector<Hull>& hulls) {
  std::set<double> prices = {0};
  for (const Hull& hull : hulls)
    for (std::size_t i = 0; i + 1 < hull.size(); ++i)
      prices.insert((hull[i + 1].time - hull[i].time) / (hull[i].kept - hull[i + 1].kept));
  return prices;
}

Hull hull_from(const std::vector<Proposal>& proposals, std::int64_t kept) {
  if (proposals.empty()) return {{static_cast<double>(kept), 0}};
  Hull hull;
  for (const Proposal& corner : proposals)
    hull.push_back({static_cast<double>(kept - (proposals.front().kept - corner.kept)),
                    static_cast<double>(corner.time)});
  return hull;
}

// The largest bound over all prices and moments: before stage s, `room[s]` is left for what the
// stages before it keep.
double best_bound(const Stages& stages, const std::vector<Hull>& hulls,
                  const std::vector<double>& room) {
  double most = 0;
  for (const double price : prices_of(hulls)) {
    double before = 0;  // of the stages so far
    for (std::size_t s = 0; s < stages.all.size(); ++s) {
      most = std::max(most, before - price * room[s]);
      before += cheapest(hulls[stages.all[s].kind], price);
    }
    most = std::max(most, before - price * room.back());
  }
  return most;
}

}  // namespace

std::int64_t Planner::lower_bound(std::int64_t bytes) const {
  std::vector<Hull> keeping, free;
  std::vector<std::int64_t> least_forward;
  for (std::size_t kind = 0; kind < stages_.kinds.size(); ++kind) {
    const StagePass& kept = reference_.stages[stages_.kinds[kind].front()].first;
    keeping.push_back(hull_from(keeping_[kind], kept.kept));
    free.push_back(hull_from(free_[kind], kept.kept));
    std::int64_t least = kept.forward;
    for (const Mode& mode : modes_)
      for (const Entry& entry : mode.menus[kind]) least = std::min(least, entry.cost.first.forward);
    least_forward.push_back(least);
  }
  std::int64_t kept_time = reference_.rest_time;
  std::vector<double> forward, backward;
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    const std::int64_t room = bytes - reference_.before;
    kept_time += reference_.stages[s].time;
    forward.push_back(
        static_cast<double>(room - reference_.before_later - least_forward[stages_.all[s].kind]));
    backward.push_back(static_cast<double>(room - least_backward_[s]));
  }
  forward.push_back(static_cast<double>(bytes - reference_.before));
  backward.push_back(forward.back());
  const double above =
      std::max(best_bound(stages_, keeping, forward), best_bound(stages_, free, backward));
  // And no plan launches fewer kernels than the one that runs nothing again.
  return std::max(kept_time + static_cast<std::int64_t>(above), reference_.launches);
}

}  // namespace tidemark
