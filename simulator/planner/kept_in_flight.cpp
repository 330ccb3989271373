// Sums of a pipeline stage that has micro-batches in flight: what others keep is there beside what
// the one at hand needs, which alone is what menus know. Chunks have gradients since their own
// first backward; in the measured pass those of all chunks behind were there by then.
#include <algorithm>

#include "simulator/planner/planner.h"

namespace tidemark {
namespace {

constexpr std::size_t most_slacks = 12;

}  // namespace

// By chunk: of its parameters, as a later pass finds them. Where the backward of the chunk before
// begins, the first pass has those of all chunks behind beside what a later pass has.
std::vector<std::int64_t> Planner::gradients_of_chunks() const {
  std::vector<std::int64_t> gradients(chunks_.size());
  std::int64_t behind = 0;
  for (std::size_t c = chunks_.size(); reference_.has_later && c-- > 0;) {
    std::int64_t from_here = reference_.before_later;
    if (c > 0) {
      const StageCost& before = reference_.stages[chunks_[c].begin - 1];
      from_here = before.first.gradients - before.later.gradients;
    }
    gradients[c] = from_here - behind;
    behind = from_here;
  }
  return gradients;
}

std::int64_t Planner::gradients_beside(const Moment& moment) const {
  const std::vector<std::int64_t> gradients = gradients_of_chunks();
  std::int64_t bytes = 0;
  for (std::size_t c = 0; c < gradients.size(); ++c)
    if (moment.beside[c].has_gradients) bytes += gradients[c];
  return bytes;
}

// Of what all chunks keep when everything is kept, the most that is there at once.
std::vector<std::int64_t> Planner::times_kept() const {
  std::vector<std::int64_t> kept(chunks_.size()), times(chunks_.size(), 1);
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    for (std::size_t s = chunks_[c].begin; s < chunks_[c].end; ++s)
      kept[c] += reference_.stages[s].first.kept;
  std::int64_t most = -1;
  for (const Moment& moment : moments_) {
    std::vector<std::int64_t> now;
    std::int64_t bytes = 0;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      now.push_back(moment.beside[c].kept + (c == moment.chunk ? 1 : 0));
      bytes += now.back() * kept[c];
    }
    if (bytes > most) most = bytes, times = std::move(now);
  }
  return times;
}

std::int64_t Planner::kept_at_once(std::size_t stage) const {
  return times_kept()[chunk_of(stage)];
}

std::size_t Planner::chunk_of(std::size_t stage) const {
  std::size_t c = 0;
  while (stage >= chunks_[c].end) ++c;
  return c;
}

std::vector<ChunkOfChain> Planner::chunks_of(const Links& links) const {
  const std::vector<std::int64_t> times = times_kept();
  std::vector<ChunkOfChain> found;
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    found.push_back({links.of_stage[chunks_[c].begin], links.of_stage[chunks_[c].end], times[c]});
  return found;
}

// Fronts of slacks, evenly taken, of the one without: nearly all plans have the same (what the last
// stage needs beyond what is kept), so a few are enough.
void Planner::add_slacks(const std::vector<std::vector<Choice>>& choices, const Links& links,
                         Mode& mode) const {
  if (!is_in_flight(moments_)) return;
  const std::vector<std::int64_t> all = mode.fronts.front().slacks(choices);
  const std::size_t count = std::min(all.size(), most_slacks);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = all.size() <= most_slacks ? i : i * (all.size() - 1) / (most_slacks - 1);
    mode.fronts.emplace_back(choices, chunks_of(links), all[at]);
  }
}

// Above what is there before the first forward, to the byte. Calls visit(part, is backward, bytes)
// with each part's needs at each moment.
template <typename Visit>
void Planner::for_each_need(const std::vector<Part>& parts, const Visit& visit) const {
  const std::vector<std::int64_t> gradients = gradients_of_chunks();
  std::vector<std::int64_t> kept(chunks_.size()), late(chunks_.size());
  const auto late_of = [&](const Part& part) {
    const StagePass& cost = part.entry->cost.first;
    const bool is_named = stages_.all[part.first].input_held != no_op;
    return cost.late + (is_named ? cost.input : 0);
  };
  for (const Part& part : parts) {
    kept[chunk_of(part.first)] += part.entry->cost.first.kept;
    late[chunk_of(part.first)] += late_of(part);
  }
  for (const Moment& moment : moments_) {
    std::int64_t there = 0;  // beside the one at hand
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const ChunkInFlight& beside = moment.beside[c];
      there += beside.kept * kept[c] + beside.held * late[c];
      if (beside.has_gradients) there += gradients[c];
      // The measured pass has these in its own count.
      if (moment.is_backward && !moment.is_later() && c > moment.chunk) there -= gradients[c];
    }
    for (const Part& part : parts) {
      if (chunk_of(part.first) != moment.chunk) continue;
      const StageCost& cost = part.entry->cost;
      const StageCost& reference = reference_.stages[part.first + part.count - 1];
      const StagePass& own = moment.is_later() ? cost.later : cost.first;
      const StagePass& known = moment.is_later() ? reference.later : reference.first;
      visit(part, moment.is_backward,
            there + (moment.is_backward ? own.backward + known.gradients : own.forward));
      there += cost.first.kept;
      if (!moment.is_backward) there += late_of(part);
    }
  }
}

std::int64_t Planner::room_in_flight(const std::vector<Part>& parts) const {
  std::int64_t most = 0;
  for_each_need(parts,
                [&](const Part&, bool, std::int64_t bytes) { most = std::max(most, bytes); });
  return most;
}

Planner::Tightest Planner::tightest_in_flight(const std::vector<Part>& parts) const {
  Tightest found;
  std::int64_t most = reference_.rest;
  for_each_need(parts, [&](const Part& part, bool is_backward, std::int64_t bytes) {
    if (reference_.before + bytes > most)
      most = reference_.before + bytes, found = {part.first, is_backward};
  });
  return found;
}

}  // namespace tidemark
