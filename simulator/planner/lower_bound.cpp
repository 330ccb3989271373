// The Lagrangian of the memory that must be there at one moment. For every price λ >= 0 of a byte,
//   time(plan) >= time(plan) + λ · (bytes there − B) >= kept time + Σ min over local plans
//                 (time + λ · kept) − λ · (B − what is there whatever the plan)
// for each plan that stays within B. It falls apart into stages, and the minimum over all local
// plans of a stage is one of the corners of its hull (proposals.h), so no plan is missed. The
// moments: while each stage's forward runs, and while its gradients do, what the stages before it
// keep is there. In the forward, what is held to its end is there in any case.
//
// What waits in the host's memory is as if kept, but for X bytes that have left by then on a link
// of β bytes per ns. In the forward, X <= β · (forward's time so far + w), if the step stands still
// for w, which adds w to its time: for λβ <= 1 that never pays, and the room is larger by β ·
// forward. In the backward, X <= β · time, so
//   time · (1 + λβ) >= kept time + Σ min (time + λ · kept) − λ · (B − …).
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

// `kept`: what the stage keeps if it keeps everything, of which `decided` can be decided about. Of
// stages that were not cut nothing is known: as if all of that could be dropped at no cost.
Hull hull_from(const std::vector<Proposal>& proposals, std::int64_t kept, std::int64_t decided) {
  if (proposals.empty()) return {{static_cast<double>(kept - decided), 0}};
  Hull hull;
  for (const Proposal& corner : proposals)
    hull.push_back(
        {static_cast<double>(kept - (decided - corner.kept)), static_cast<double>(corner.time)});
  return hull;
}

/// Before stage s, `room[s]` is left for what the stages before it keep.
struct Moments {
  const Stages& stages;
  const std::vector<Hull>& hulls;
  const std::vector<double>& room;
  double kept_time;
};

// The largest over all prices and moments of
//   bound(price, time + price · (what stages before the moment keep − room)).
template <typename Bound>
double best_bound(const Moments& moments, Bound bound) {
  double fastest = moments.kept_time, most = 0;
  for (const Stage& stage : moments.stages.all) fastest += cheapest(moments.hulls[stage.kind], 0);
  for (const double price : prices_of(moments.hulls)) {
    double time = fastest;  // priced so far
    for (std::size_t s = 0; s < moments.stages.all.size(); ++s) {
      most = std::max(most, bound(price, time - price * moments.room[s]));
      const Hull& hull = moments.hulls[moments.stages.all[s].kind];
      time += cheapest(hull, price) - cheapest(hull, 0);
    }
    most = std::max(most, bound(price, time - price * moments.room.back()));
  }
  return most;
}

}  // namespace

// Before each stage's forward, and after the last: what is left for what stages before it keep.
std::vector<double> Planner::forward_room(std::int64_t bytes, double link) const {
  std::vector<std::int64_t> least;
  for (std::size_t kind = 0; kind < stages_.kinds.size(); ++kind) {
    least.push_back(reference_.stages[stages_.kinds[kind].front()].first.forward);
    for (const Mode& mode : modes_)
      for (const Entry& entry : mode.menus.front()[kind])
        least.back() = std::min(least.back(), entry.cost.first.forward);
  }
  std::vector<double> room;
  double gone = 0;  // as much as the link can have brought away
  for (const Stage& stage : stages_.all) {
    gone += link * static_cast<double>(forward_time(stage.kind));
    room.push_back(gone + static_cast<double>(bytes - reference_.before - reference_.before_later -
                                              least[stage.kind]));
  }
  room.push_back(gone + static_cast<double>(bytes - reference_.before));
  return room;
}

std::vector<double> Planner::backward_room(std::int64_t bytes) const {
  std::vector<double> room;
  for (const std::int64_t least : least_backward_)
    room.push_back(static_cast<double>(bytes - reference_.before - least));
  room.push_back(static_cast<double>(bytes - reference_.before));
  return room;
}

double Planner::kept_time() const {
  std::int64_t time = reference_.rest_time;
  for (const StageCost& stage : reference_.stages) time += stage.time;
  return static_cast<double>(time);
}

std::int64_t Planner::lower_bound(std::int64_t bytes, double link) const {
  std::vector<Hull> keeping, free;
  for (std::size_t kind = 0; kind < stages_.kinds.size(); ++kind) {
    const StagePass& kept = reference_.stages[stages_.kinds[kind].front()].first;
    const std::int64_t decided = decided_bytes(*trace_, stages_.all[stages_.kinds[kind].front()]);
    keeping.push_back(hull_from(keeping_[kind], kept.kept, decided));
    free.push_back(hull_from(free_[kind], kept.kept, decided));
  }
  const std::vector<double> in_forward = forward_room(bytes, link);
  const std::vector<double> in_backward = backward_room(bytes);
  const double most = std::max(
      best_bound({stages_, keeping, in_forward, kept_time()},
                 [&](double price, double bound) { return price * link <= 1 ? bound : 0; }),
      best_bound({stages_, free, in_backward, kept_time()},
                 [&](double price, double bound) { return bound / (1 + price * link); }));
  // No plan launches fewer kernels than the one that runs nothing again.
  return std::max(static_cast<std::int64_t>(most), reference_.launches);
}

}  // namespace tidemark
