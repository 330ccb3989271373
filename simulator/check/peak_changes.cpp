#include "simulator/check/peak_changes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {
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

// A group that the baseline did not keep was not larger than any that it kept, nor than all the
// others together. What is larger now is new or grew, by at least the difference; it is named, and
// stays a part of the rest.
void judge_unmatched(const Expected& expected, std::vector<PeakGroup> unmatched,
                     PeakDifference& difference) {
  PeakChange& rest = difference.rest;
  rest.before.tensors = expected.other_tensors;
  rest.before.bytes = expected.other_bytes;
  const bool knows_all = expected.other_tensors == 0;
  Bytes most = expected.other_bytes;
  if (!expected.peak.empty()) most = std::min(most, expected.peak.back().bytes);
  for (PeakGroup& group : unmatched) {
    if (!knows_all) {
      rest.now.tensors += group.tensors;
      rest.now.bytes += group.bytes;
      if (group.bytes <= most) continue;
    }
    PeakGroup before = group;
    before.tensors = 0;
    before.bytes = knows_all ? Bytes{} : most;
    before.decision.clear();
    difference.changes.push_back({before, std::move(group), knows_all, false, !knows_all});
  }
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
  judge_unmatched(expected, match(expected.peak, outcome.peak, difference), difference);
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

}  // namespace tidemark
