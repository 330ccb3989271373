// The Lagrangian of the memory that must be there at one moment. For every price λ >= 0 of a byte,
//   time(plan) >= time(plan) + λ · (bytes there − B) >= kept time + Σ min over local plans
//                 (time + λ · kept) − λ · (B − what is there whatever the plan)
// for each plan that stays within B. It falls apart into stages, and the minimum over all local
// plans of a stage is one of the corners of its hull (proposals.h), so no plan is missed. The
// moments: while each stage's forward runs, and while its gradients do, what the stages before it
// keep is there. In the forward, what is held to its end is there in any case.
//
// What waits in the host's memory is as if kept, but for X bytes that have left by then on a link
// of β bytes per ns. All of it leaves before the backward begins (offloaded_values.cpp), so that X
// <= β · (forward's time so far + w), if the step stands still for w, which adds w to its time: for
// λβ <= 1 that never pays, and the room is larger by β · forward. Codes are made in the forward: it
// is counted as if all were.
//
// Of a pipeline stage with n other micro-batches in flight, n · kept of every stage is there beside
// that, so that stages before the moment count n + 1 times, and those behind it n times. Of chunks
// each has an n of its own, and the moment is in one of them.
#include <algorithm>
#include <set>

#include "simulator/planner/planner.h"
#include "simulator/planner/prices.h"

namespace tidemark {
namespace {

// At which a plan changes if `times` as much is kept.
void add_prices(const Hull& hull, std::int64_t times, std::set<double>& prices) {
  for (std::size_t i = 0; times > 0 && i + 1 < hull.size(); ++i)
    prices.insert((hull[i + 1].time - hull[i].time) /
                  (static_cast<double>(times) * (hull[i].kept - hull[i + 1].kept)));
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

// What no mixture of two corners beats, those that keep most first: of the hulls of several sets of
// operators, one.
Hull lower_hull(Hull corners) {
  std::ranges::sort(corners, [](const Corner& a, const Corner& b) {
    return a.kept != b.kept ? a.kept > b.kept : a.time < b.time;
  });
  Hull hull;
  const auto is_above = [](const Corner& a, const Corner& b, const Corner& c) {
    return (b.time - a.time) * (a.kept - c.kept) >= (c.time - a.time) * (a.kept - b.kept);
  };
  for (const Corner& corner : corners) {
    if (!hull.empty() && corner.kept == hull.back().kept) continue;
    while (!hull.empty() && corner.time <= hull.back().time) hull.pop_back();
    while (hull.size() > 1 && is_above(hull[hull.size() - 2], hull.back(), corner)) hull.pop_back();
    hull.push_back(corner);
  }
  return hull;
}

/// Before stage s of [begin, end), `room[s]` is left for what those before it keep, and for all
/// that `others[s]` micro-batches do of each stage; behind them room[end].
struct Moments {
  const std::vector<Hull>& hulls;  ///< by stage
  const std::vector<double>& room;
  double kept_time;
  std::vector<std::int64_t> others;  ///< by stage
  std::size_t begin, end;
  std::vector<std::vector<WithinStage>> within;  ///< by stage
};

// The largest over all prices and moments of
//   time + price · (what stages before the moment keep, and others − room).
double best_bound(const Moments& moments, double link) {
  std::set<double> prices = {0};
  for (std::size_t s = 0; s < moments.hulls.size(); ++s) {
    const bool is_at_hand = s >= moments.begin && s < moments.end;
    if (is_at_hand) add_prices(moments.hulls[s], moments.others[s] + 1, prices);
    add_prices(moments.hulls[s], moments.others[s], prices);
    for (const WithinStage& each : moments.within[s]) add_prices(each.hull, 1, prices);
  }
  double most = 0;
  for (const double price : up_to(most_price(link), std::move(prices))) {
    const auto least = [&](std::size_t s, std::int64_t times) {
      return cheapest(moments.hulls[s], static_cast<double>(times) * price);
    };
    double time = moments.kept_time;  // priced so far
    for (std::size_t s = 0; s < moments.hulls.size(); ++s) time += least(s, moments.others[s]);
    for (std::size_t s = moments.begin; s < moments.end; ++s) {
      most = std::max(most, time - price * moments.room[s]);
      for (const WithinStage& at : moments.within[s])
        most = std::max(most, time - least(s, 0) + cheapest(at.hull, price) - price * at.room);
      time += least(s, moments.others[s] + 1) - least(s, moments.others[s]);
    }
    most = std::max(most, time - price * moments.room[moments.end]);
  }
  return most;
}

}  // namespace

// Of whatever the stage may do.
std::int64_t Planner::least_forward(std::size_t stage) const {
  std::int64_t least = bare_.stages[stage].first.forward;
  for_each_operators(stages_.all[stage], [&](std::uint32_t operators) {
    const Planner& planner = of(operators);
    for (const Mode& mode : planner.modes_)
      for (const Entry& entry : mode.menus.front()[planner.stages_.all[stage].kind])
        least = std::min(least, entry.cost.first.forward);
  });
  return least;
}

// Operators may do without parameters.
std::int64_t Planner::bytes_before() const {
  std::int64_t least = bare_.before;
  for (const BlockOperators& each : operators_)
    least = std::min(least, each.everywhere->bare_.before);
  return least;
}

// Those that can be tightest. A forward that is not the first has as much beside it, and gradients;
// of backwards least_backward_ knows the most of any, which is there in later ones at least.
std::vector<const Moment*> Planner::bounding_moments() const {
  const auto is_later_too = [&](const Moment& first) {
    return std::ranges::any_of(moments_, [&](const Moment& other) {
      if (other.is_backward != first.is_backward || other.chunk != first.chunk || !other.is_later())
        return false;
      for (std::size_t c = 0; c < chunks_.size(); ++c)
        if (other.beside[c].kept < first.beside[c].kept && !first.is_backward) return false;
      return true;
    });
  };
  std::vector<const Moment*> found;
  for (const Moment& moment : moments_)
    if (moment.is_later() || !is_later_too(moment)) found.push_back(&moment);
  return found;
}

std::int64_t Planner::most_coding_ns(TensorId storage) const {
  std::int64_t most = 0;
  if (!coded_.empty())
    for (const Coded& coded : coded_[index(storage)]) most = std::max(most, coded.forward_ns);
  return most;
}

// Of whatever the stage may do in one pass.
std::int64_t Planner::most_forward_ns(std::size_t stage) const {
  std::int64_t most = 0;
  for_each_operators(stages_.all[stage], [&](std::uint32_t operators) {
    const Planner& planner = of(operators);
    std::int64_t ns = planner.reference_.stages[stage].forward_ns;
    const Stage& its = planner.stages_.all[stage];
    for (const std::vector<TensorId>* storages : {&its.decided, &its.inputs})
      for (const TensorId storage : *storages) ns += planner.most_coding_ns(storage);
    most = std::max(most, ns);
  });
  return most;
}

// By stage, before the end of its forward: as much as the link can have brought away.
std::vector<double> Planner::gone_by(double link) const {
  std::vector<double> gone;
  std::int64_t ns = 0;
  for (std::size_t s = 0; s < stages_.all.size(); ++s)
    gone.push_back(link * static_cast<double>(ns += most_forward_ns(s)));
  return gone;
}

// By stage: what those before it are charged for and its forward finds in any case, because it or
// one behind it reads it, too.
std::vector<std::int64_t> Planner::charged_before_last_read() const {
  std::vector<std::int64_t> charged(stages_.all.size());
  for (std::size_t s = 0; s < stages_.all.size(); ++s)
    for (const auto& [storage, bytes] : stages_.all[s].shared_reads)
      for (std::size_t later = s + 1; later < stages_.all.size() &&
                                      stages_.all[later].begin <= needs_.last_read[index(storage)];
           ++later)
        charged[later] += bytes;
  return charged;
}

// Before each stage's forward, and after the last: what is left for what stages before it keep.
std::vector<double> Planner::forward_room(const Moment& moment, std::int64_t bytes,
                                          double link) const {
  const std::int64_t left = bytes - bytes_before();
  const std::int64_t gradients = gradients_beside(moment);
  const std::vector<double> gone = gone_by(link);
  const std::vector<std::int64_t> charged = charged_before_last_read();
  std::vector<double> room;
  for (std::size_t s = 0; s < stages_.all.size(); ++s)
    room.push_back(gone[s] + static_cast<double>(left - gradients - least_forward(s) + charged[s]));
  room.push_back(gone.back() + static_cast<double>(left));
  return room;
}

// The least that a stage works on, and the fewest gradients that later ones, which may have fewer
// parameters, have left before it. Where chunks have none yet, it is less by all of theirs.
std::vector<double> Planner::backward_room(const Moment& moment, std::int64_t bytes,
                                           double link) const {
  const double gone = gone_by(link).back();
  std::int64_t left = bytes - bytes_before();
  const std::vector<std::int64_t> gradients_of = gradients_of_chunks();
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    if (chunks_.size() > 1 && !moment.beside[c].has_gradients) left += gradients_of[c];
  std::vector<double> room;
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    std::int64_t gradients = bare_.stages[s].first.gradients;
    std::int64_t working = least_backward_[s] - gradients - undone_bytes(s);
    for (const BlockOperators& each : operators_) {
      const std::int64_t its = each.everywhere->bare_.stages[s].first.gradients;
      working = std::min(working, each.everywhere->least_backward_[s] - its);
      gradients = std::min(gradients, its);
    }
    room.push_back(gone + static_cast<double>(left - working - gradients));
  }
  room.push_back(gone + static_cast<double>(left));
  return room;
}

double Planner::kept_time() const {
  std::int64_t time = reference_.rest_time;
  for (const BlockOperators& each : operators_)
    time = std::min(time, each.everywhere->reference_.rest_time);
  for (const StageCost& stage : reference_.stages) time += stage.time;
  return static_cast<double>(time);
}

std::int64_t Planner::least_launches() const {
  std::int64_t least = reference_.launches;
  for (const BlockOperators& each : operators_)
    least = std::min(least, each.everywhere->reference_.launches);
  return least;
}

// Over all sets of operators that the stage may have.
Hull Planner::hull_at(std::size_t stage, Held held) const {
  Hull all;
  bool is_mixed = !operators_.empty();
  for_each_operators(stages_.all[stage], [&](std::uint32_t operators) {
    const Planner& planner = of(operators);
    const Stage& its = planner.stages_.all[stage];
    const StageCost& kept = planner.reference_.stages[stage];
    const auto& proposals = held == Held::Kept ? planner.keeping_ : planner.free_;
    const auto later = static_cast<double>(kept.time - reference_.stages[stage].time);
    const std::int64_t decided = decided_bytes(*planner.trace_, its);
    for (const auto* corners : {&proposals[its.kind], &planner.undoing_[its.kind]}) {
      if (corners->empty() && corners != &proposals[its.kind]) continue;
      for (const Corner& corner :
           hull_from(*corners, planner.bare_.stages[stage].first.kept, decided))
        all.push_back({corner.kept, corner.time + later});
    }
    is_mixed = is_mixed || planner.undoes_[its.kind];
  });
  return is_mixed ? lower_hull(std::move(all)) : all;
}

// What is held to the end of the forward is there until then in any case, where anything is held;
// of micro-batches in flight others' forwards are over.
Held Planner::held_at(const Moment& moment) const {
  const bool is_there = !moment.is_backward && !is_in_flight(moments_) && can_drop_held(stages_);
  return is_there ? Held::Kept : Held::Free;
}

std::int64_t Planner::bound_of_single(std::int64_t bytes, double link) const {
  std::vector<Hull> keeping, free;
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    keeping.push_back(hull_at(s, Held::Kept));
    free.push_back(hull_at(s, Held::Free));
  }
  double most = 0;
  for (const Moment* moment : bounding_moments()) {
    const ChunkOfStage& chunk = chunks_[moment->chunk];
    const std::vector<double> room = moment->is_backward ? backward_room(*moment, bytes, link)
                                                         : forward_room(*moment, bytes, link);
    std::vector<std::int64_t> others;
    for (std::size_t s = 0; s < stages_.all.size(); ++s)
      others.push_back(moment->beside[chunk_of(s)].kept);
    const Moments moments{held_at(*moment) == Held::Kept ? keeping : free,
                          room,
                          kept_time(),
                          std::move(others),
                          chunk.begin,
                          chunk.end,
                          within(*moment, room)};
    most = std::max(most, best_bound(moments, link));
  }
  // No plan launches fewer kernels than the one that runs nothing again.
  return std::max(static_cast<std::int64_t>(most), least_launches());
}

}  // namespace tidemark
