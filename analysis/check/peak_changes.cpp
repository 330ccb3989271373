// Pairs groups by role and op, then by name alone; what the baseline did not keep is bounded.
#include "analysis/check/peak_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/check/block_names.h"

namespace tidemark::regression {
namespace {

bool is_change(const PeakChange& change) {
  return change.change() != Bytes{} || change.before.tensors != change.now.tensors ||
         change.before.decision != change.now.decision || change.before.op != change.now.op;
}

bool has_same_name(const PeakGroup& a, const PeakGroup& b) {
  return a.role == b.role && a.contents == b.contents;
}

/// Takes the pairs of `kept` and `now` that belong together out of both.
template <typename Belongs>
void pair_up(std::vector<PeakGroup>& kept, std::vector<PeakGroup>& now, Belongs belongs,
             PeakDifference& difference) {
  std::erase_if(kept, [&](const PeakGroup& before) {
    const auto found =
        std::ranges::find_if(now, [&](const PeakGroup& group) { return belongs(group, before); });
    if (found == now.end()) return false;
    difference.changes.push_back({before, *found});
    now.erase(found);
    return true;
  });
}

/// The groups of now that the baseline did not keep by themselves. Those of equal role are pairs;
/// among what is left, the same tensor made by another op is still the same tensor.
std::vector<PeakGroup> match(std::vector<PeakGroup> kept, std::vector<PeakGroup> now,
                             PeakDifference& difference) {
  pair_up(kept, now, is_same_role, difference);
  pair_up(kept, now, has_same_name, difference);
  for (const PeakGroup& before : kept) {
    PeakGroup nothing = before;
    nothing.tensors = 0;
    nothing.bytes = Bytes{};
    difference.changes.push_back({before, nothing, false, true});
  }
  return now;
}

/// Which of the blocks of now the baseline does not know, by index in the trace.
std::vector<bool> new_blocks(const Expected& expected, const ExperimentOutcome& outcome) {
  std::vector<bool> is_new(outcome.blocks.size(), false);
  if (!expected.model || expected.model->block_names.empty()) return is_new;
  for (std::size_t i = 0; i < is_new.size(); ++i)
    is_new[i] = !is_in_ranges(expected.model->block_names, outcome.blocks[i]);
  return is_new;
}

/// Collects what new blocks brought, so that a deeper model is not told as each role's growth.
class NewBlocks {
 public:
  NewBlocks(const Expected& expected, const ExperimentOutcome& outcome)
      : is_new_(new_blocks(expected, outcome)) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < is_new_.size(); ++i)
      if (is_new_[i]) names.push_back(outcome.blocks[i]);
    count_ = names.size();
    sum_.role = fmt::format("{}", fmt::join(block_ranges(names), ", "));
    sum_.contents = count_ == 1 ? "new block" : fmt::format("{} new blocks", count_);
  }

  /// What the group has in new blocks.
  PeakGroup part_of(const PeakGroup& group) const {
    PeakGroup part;
    for (const BlockShare& share : group.blocks)
      for (std::size_t block = share.first; block <= share.last; ++block)
        if (is_new_.at(block)) part.tensors += share.tensors, part.bytes += share.bytes;
    return part;
  }

  /// Moves `part` from `now` here, as far as `now` is larger than `before`: a tensor that always
  /// one block has at the peak is not new because it is the new block's turn.
  void take(const PeakGroup& part, const PeakGroup& before, PeakGroup& now) {
    const Bytes bytes = std::clamp(now.bytes - before.bytes, Bytes{}, part.bytes);
    const std::int64_t tensors =
        std::clamp(now.tensors - before.tensors, std::int64_t{0}, part.tensors);
    now.bytes -= bytes;
    now.tensors -= tensors;
    sum_.bytes += bytes;
    sum_.tensors += tensors;
  }

  /// The new blocks as one change.
  std::optional<PeakChange> change() const {
    if (sum_.bytes == Bytes{}) return {};
    PeakGroup nothing = sum_;
    nothing.tensors = 0;
    nothing.bytes = Bytes{};
    return PeakChange{nothing, sum_, true};
  }

 private:
  std::vector<bool> is_new_;
  std::size_t count_ = 0;
  PeakGroup sum_;
};

// A group that the baseline did not keep was not larger than any that it kept, nor than all the
// others together. What is larger now is new or grew, by at least the difference; it is named, and
// stays a part of the rest.
void judge_unmatched(const Expected& expected, std::vector<PeakGroup> unmatched,
                     NewBlocks& new_blocks, PeakDifference& difference) {
  PeakChange& rest = difference.rest;
  rest.before.tensors = expected.other_tensors;
  rest.before.bytes = expected.other_bytes;
  const bool knows_all = expected.other_tensors == 0;
  Bytes most = expected.other_bytes;
  if (!expected.peak.empty()) most = std::min(most, expected.peak.back().bytes);
  PeakGroup in_new_blocks;
  for (PeakGroup& group : unmatched) {
    PeakGroup before = group;
    before.tensors = 0;
    before.bytes = knows_all ? Bytes{} : most;
    before.decision.clear();
    const PeakGroup part = new_blocks.part_of(group);
    if (knows_all) {
      new_blocks.take(part, before, group);
    } else {
      rest.now.tensors += group.tensors;
      rest.now.bytes += group.bytes;
      in_new_blocks.tensors += part.tensors;
      in_new_blocks.bytes += part.bytes;
      group.tensors -= part.tensors;
      group.bytes -= part.bytes;
    }
    if (group.bytes > before.bytes)
      difference.changes.push_back({before, std::move(group), knows_all, false, !knows_all});
  }
  new_blocks.take(in_new_blocks, rest.before, rest.now);
}

std::string decision_text(const PeakChange& change) {
  const std::string& now = change.now.decision;
  if (change.is_gone || now.empty()) return "";
  const bool is_other = !change.is_new && !change.is_bound && change.before.decision != now;
  const std::string& reason = change.now.reason;
  if (is_other)
    return fmt::format("; was {}, is {}{}", change.before.decision, now,
                       reason.empty() ? "" : fmt::format(" ({})", reason));
  return "; " + (reason.empty() ? now : reason);
}

std::string tensors_text(const PeakChange& change) {
  const std::int64_t before = change.before.tensors, now = change.now.tensors;
  const bool is_one = change.is_new || change.is_bound || before == now;
  return fmt::format("{}{} tensor{}", is_one ? "" : fmt::format("{} → ", before), now,
                     now == 1 ? "" : "s");
}

}  // namespace

PeakDifference difference_of_peaks(const Expected& expected, const ExperimentOutcome& outcome) {
  PeakDifference difference;
  NewBlocks new_blocks(expected, outcome);
  std::vector<PeakGroup> unmatched = match(expected.peak, outcome.peak, difference);
  for (PeakChange& change : difference.changes)
    new_blocks.take(new_blocks.part_of(change.now), change.before, change.now);
  judge_unmatched(expected, std::move(unmatched), new_blocks, difference);
  if (const auto change = new_blocks.change()) difference.changes.push_back(*change);
  std::erase_if(difference.changes, [](const PeakChange& change) { return !is_change(change); });
  std::ranges::stable_sort(difference.changes, std::greater(), [](const PeakChange& change) {
    return std::abs(change.change().count);
  });
  return difference;
}

std::string describe(const PeakChange& change) {
  const PeakGroup& group = change.now;
  const char* mark = change.is_new     ? "[NEW] "
                     : change.is_gone  ? "[GONE] "
                     : change.is_bound ? "[NEW or larger] at least "
                                       : "";
  const bool is_other_op = change.before.op != group.op;
  const std::string of = group.op.empty() ? ""
                         : is_other_op
                             ? fmt::format(" of {}, once of {}", group.op, change.before.op)
                             : " of " + group.op;
  return fmt::format("{}{} {} ({}{}; {}{})", mark, change_text(Metric::Live, change.change().count),
                     group.role.empty() ? "scratch memory" : group.role, group.contents, of,
                     tensors_text(change), decision_text(change));
}

}  // namespace tidemark::regression
