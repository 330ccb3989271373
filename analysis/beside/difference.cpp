// Matches both sides at one moment, then asks of each block that is left over what it would be.
#include "analysis/beside/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

namespace tidemark::beside {
namespace {

/// Since when each block is there, in changes; 0: from the beginning.
std::vector<std::size_t> since(const Side& side) {
  std::vector<std::size_t> since(side.blocks.size());
  for (std::size_t i = 0; i < side.changes.size(); ++i)
    if (side.changes[i].appears) since[side.changes[i].block] = i + 1;
  return since;
}

/// What a block of the recording would be in the prediction, whether that is there by then or not.
class Candidates {
 public:
  Candidates(const Side& predicted, const Side& recorded)
      : predicted_(predicted), recorded_(recorded) {
    for (std::size_t b = 0; b < predicted.blocks.size(); ++b)
      by_size_[rounded(predicted.blocks[b].size).count].push_back(static_cast<std::uint32_t>(b));
    taken_.resize(predicted.blocks.size());
  }

  /// The best, of several the one that least blocks have been taken for; nullptr if none fits.
  const Block* of(const Block& block, bool is_older) {
    const auto same = by_size_.find(rounded(block.size).count);
    if (same == by_size_.end()) return nullptr;
    int best = -1;
    std::optional<std::uint32_t> found;
    for (const std::uint32_t candidate : same->second) {
      const int points = points_of(predicted_.blocks[candidate], block, is_older);
      const bool is_better =
          points > best || (points == best && found && taken_[candidate] < taken_[*found]);
      if (points >= 0 && is_better) best = points, found = candidate;
    }
    if (!found) return nullptr;
    ++taken_[*found];
    return &predicted_.blocks[*found];
  }

 private:
  // Negative: it cannot be. A line on the stack says most, then what the block is for.
  int points_of(const Block& candidate, const Block& block, bool is_older) const {
    const std::string_view line = line_of(predicted_, candidate);
    const bool is_of_forward = !is_of_backward(recorded_, block);
    const bool stays =
        candidate.category == Category::Parameter || candidate.category == Category::OptimizerState;
    if (candidate.tensor == no_tensor || (stays && !is_older)) return -1;
    const bool is_known = block.category != Category::Unknown;
    if (is_known && stays && block.category != candidate.category) return -1;
    if (!line.empty() && has_lines(recorded_, block))
      return is_called_at(recorded_, block, line) ? 8 : -1;
    if (is_of_forward && is_made_by_same(predicted_, candidate, recorded_, block)) return 6;
    if (is_of_forward) return stays ? 2 : candidate.role == Role::Value ? 1 : 0;
    return candidate.role == Role::Gradient ? 4 : line.empty() ? 1 : 0;
  }

  const Side& predicted_;
  const Side& recorded_;
  std::unordered_map<std::int64_t, BlockList> by_size_;
  std::vector<std::uint32_t> taken_;  // by block
};

/// Adds blocks to causes, those of one name together.
class Causes {
 public:
  void add(CauseKind kind, Bytes bytes, const CauseTensor& tensor) {
    Cause& cause = of(kind);
    cause.bytes += bytes;
    ++cause.blocks;
    const auto [place, is_new] =
        known_.emplace(std::tuple(kind, tensor.tensor, tensor.allocated_by), cause.tensors.size());
    if (is_new) cause.tensors.push_back(tensor);
    CauseTensor& sum = cause.tensors[place->second];
    ++sum.blocks;
    sum.size += bytes < Bytes{} ? Bytes{} - bytes : bytes;
  }
  void add(CauseKind kind, Bytes bytes) { of(kind).bytes += bytes; }

  std::vector<Cause> finish() && {
    std::erase_if(causes_, [](const Cause& cause) { return cause.bytes == Bytes{}; });
    const auto weight = [](const Cause& cause) { return std::abs(cause.bytes.count); };
    std::ranges::stable_sort(causes_, std::greater(), weight);
    for (Cause& cause : causes_)
      std::ranges::stable_sort(cause.tensors, std::greater(), &CauseTensor::size);
    return std::move(causes_);
  }

 private:
  Cause& of(CauseKind kind) {
    const auto found = std::ranges::find(causes_, kind, &Cause::kind);
    if (found != causes_.end()) return *found;
    causes_.push_back({kind, {}, 0, {}});
    return causes_.back();
  }

  std::vector<Cause> causes_;
  std::map<std::tuple<CauseKind, std::string, std::string>, std::size_t> known_;
};

CauseKind kind_of(const Plan& plan, const Trace& trace, const Block* candidate, bool is_older) {
  if (!candidate) return is_older ? CauseKind::UnpredictedBefore : CauseKind::Unpredicted;
  if (is_older && candidate->role == Role::Gradient) return CauseKind::EarlierGradients;
  if (is_older && (candidate->category == Category::Parameter ||
                   candidate->category == Category::OptimizerState))
    return CauseKind::SecondCopy;
  if (is_older) return CauseKind::EarlierSteps;
  const TensorId owner = trace[candidate->tensor].storage;
  const bool is_value = candidate->role == Role::Value;
  if (is_value && plan.decisions[index(owner)].action != Action::Keep) return CauseKind::NotGivenUp;
  return CauseKind::HeldLonger;
}

/// When the step of the peak began: with the first activation of it that is still there.
std::size_t begin_of_step(const Side& predicted, const Match& match,
                          const std::vector<std::size_t>& since) {
  std::size_t begin = std::numeric_limits<std::size_t>::max();
  for (const auto& [ours, theirs] : match.pairs)
    if (predicted.blocks[ours].category == Category::Activation && since[theirs] > 0)
      begin = std::min(begin, since[theirs]);
  return begin;
}

CauseTensor tensor_of(const Side& predicted, const Block* block, const Side& recorded,
                      const Block* found) {
  return {.tensor = block ? name_of(predicted, *block) : "",
          .line = block ? std::string(line_of(predicted, *block)) : "",
          .allocated_by = found && has_stack(recorded, *found) ? name_of(recorded, *found) : ""};
}

void add_left_over(const Plan& plan, const Side& predicted, const Side& recorded,
                   const Match& match, Causes& causes) {
  const std::vector<std::size_t> times = since(recorded);
  const std::size_t begin = begin_of_step(predicted, match, times);
  Candidates candidates(predicted, recorded);
  for (const std::uint32_t number : match.recorded_only) {
    const Block& block = recorded.blocks[number];
    const bool is_older = times[number] < begin && begin != std::numeric_limits<std::size_t>::max();
    const Block* candidate = candidates.of(block, is_older);
    causes.add(kind_of(plan, *predicted.trace, candidate, is_older), block.size,
               tensor_of(predicted, candidate, recorded, &block));
  }
  for (const std::uint32_t number : match.predicted_only) {
    const Block& block = predicted.blocks[number];
    causes.add(CauseKind::Missing, Bytes{} - block.size,
               tensor_of(predicted, &block, recorded, nullptr));
  }
}

/// Of what is there on both sides.
void add_larger(const Side& before, const Side& predicted, const Side& recorded,
                const Difference& difference, const Match& match, Causes& causes) {
  for (const auto& [ours, theirs] : match.pairs) {
    const Block& block = predicted.blocks[ours];
    causes.add(CauseKind::Unsplit, recorded.blocks[theirs].size - block.size);
    if (difference.scale && is_scaled(*difference.scale, block))
      causes.add(CauseKind::Scaled, block.size - before.blocks[ours].size,
                 tensor_of(predicted, &block, recorded, &recorded.blocks[theirs]));
  }
  if (!difference.scale) return;
  for (const std::uint32_t number : match.predicted_only)
    causes.add(CauseKind::Scaled, predicted.blocks[number].size - before.blocks[number].size);
}

/// What is compared with what: the higher side at its peak, the other where it is most alike.
struct Moments {
  BlockList there, found;
};

Moments moments_of(const Side& predicted, const Side& recorded) {
  BlockList there = blocks_at(predicted, highest_moment(predicted));
  BlockList found = blocks_at(recorded, highest_moment(recorded));
  if (bytes_of(predicted, there) < bytes_of(recorded, found))
    there = blocks_at(predicted, most_alike_moment(predicted, recorded, found));
  else
    found = blocks_at(recorded, most_alike_moment(recorded, predicted, there));
  return {std::move(there), std::move(found)};
}

}  // namespace

Difference explain_difference(const Evaluation& evaluation, const Device& device,
                              const Recording& recording, const std::vector<Bytes>& requested) {
  const Trace& trace = *evaluation.planned.trace;
  const Side before = predicted_side(evaluation, find_framework(trace.step.framework), device);
  const Side as_recorded = recorded_side(recording, requested);
  const BlockList ours = blocks_at(before, highest_moment(before));
  const BlockList theirs = blocks_at(as_recorded, highest_moment(as_recorded));
  const Bytes predicted_peak = bytes_of(before, ours),
              recorded_peak = bytes_of(as_recorded, theirs);
  Difference difference{.predicted = evaluation.report.allocated_peak,
                        .recorded = recorded_peak,
                        .scale = find_scale(before, ours, as_recorded, theirs),
                        .batch = trace.step.batch};
  const Side predicted = difference.scale ? scaled(before, *difference.scale) : before;
  const Side recorded =
      requested.empty() ? with_predicted_sizes(as_recorded, predicted) : as_recorded;
  const auto [there, found] = moments_of(predicted, recorded);
  const Match matched = match(predicted, there, recorded, found);
  difference.compared = bytes_of(recorded, found);
  difference.recorded_blocks = found.size();
  difference.matched_blocks = matched.pairs.size();
  for (const auto& pair : matched.pairs) difference.matched += recorded.blocks[pair.second].taken();
  Causes causes;
  add_left_over(evaluation.planned.plan, predicted, recorded, matched, causes);
  add_larger(before, predicted, recorded, difference, matched, causes);
  for (const std::uint32_t block : found)
    causes.add(CauseKind::Unsplit, recorded.blocks[block].unsplit);
  causes.add(CauseKind::OtherMoment, bytes_of(before, there) - predicted_peak);
  causes.add(CauseKind::OtherMoment, recorded_peak - difference.compared);
  causes.add(CauseKind::Unsplit, predicted_peak - difference.predicted);
  difference.causes = std::move(causes).finish();
  return difference;
}

}  // namespace tidemark::beside
