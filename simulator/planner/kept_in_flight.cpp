// Fronts of a pipeline stage that has micro-batches in flight. With K, what a micro-batch keeps in
// all, and M, the most that is there while one is taken by itself, n others beside it need
//   n · K + M,
// of which M alone is what a front is about. For a given slack h, the front of plans with
// M − K >= h, which need n · K + max(M, K + h), is one in M again: the last stage asks for h more.
// The fastest plan for any memory is among those of its own slack. Slacks are nearly the same for
// all plans (what the last stage needs beyond what is kept), so a few of them are enough.
#include <algorithm>

#include "simulator/planner/planner.h"

namespace tidemark {
namespace {

constexpr std::size_t most_slacks = 12;

}  // namespace

std::int64_t Planner::kept_by(const std::vector<Part>& parts) {
  std::int64_t kept = 0;
  for (const Part& part : parts) kept += part.entry->cost.first.kept;
  return kept;
}

// Those of the first front, evenly taken; none without others.
std::vector<std::int64_t> Planner::slacks_of(const Mode& mode) const {
  std::vector<std::int64_t> all;
  if (in_flight_.others == 0) return all;
  const Front& front = mode.fronts.front();
  for (std::size_t point = 0; point < front.size(); ++point) {
    std::int64_t slack = front[point].room;
    for (const Front::Picked& picked : front.choices_at(point))
      slack -= mode.parts[picked.stage][picked.choice].entry->cost.first.kept;
    all.push_back(slack);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() <= most_slacks) return all;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < most_slacks; ++i)
    some.push_back(all[i * (all.size() - 1) / (most_slacks - 1)]);
  return some;
}

// Above what is there before the first forward, to the byte: the last backwards may have fewer
// others beside them than the first one.
std::int64_t Planner::room_in_flight(const std::vector<Part>& parts) const {
  const std::int64_t kept = kept_by(parts), beside = in_flight_.others * kept;
  const std::int64_t beside_later = in_flight_.others_later * kept + reference_.before_later;
  std::int64_t most = 0, before = 0, late = 0;
  for (const Part& part : parts) {
    const StageCost& cost = part.entry->cost;
    const StageCost& reference = reference_.stages[part.first + part.count - 1];
    const auto there = [&](std::int64_t others, std::int64_t own) {
      most = std::max(most, others + before + own);
    };
    there(beside, late + cost.first.forward);
    there(beside, cost.first.backward + reference.first.gradients);
    if (reference_.has_later) {
      if (in_flight_.forwards_later()) there(beside_later, late + cost.later.forward);
      there(beside_later, cost.later.backward + reference.later.gradients);
    }
    before += cost.first.kept;
    late += cost.first.late;
  }
  return most;
}

}  // namespace tidemark
