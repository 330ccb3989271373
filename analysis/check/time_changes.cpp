// Matches kept groups of runs with those of now, and bounds the ones the baseline did not keep.
#include "analysis/check/time_changes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::regression {

using tidemark::to_text;  // of units, beside the overloads of this folder
namespace {

bool is_same(const diff::TimeGroup& a, const diff::TimeGroup& b) {
  return a.task == b.task && a.op == b.op && a.stream == b.stream;
}

void add(diff::TimeGroup& sum, const diff::TimeGroup& group) {
  sum.runs += group.runs;
  sum.time += group.time;
}

// The same bound as of peaks: not longer than the shortest that was kept, nor than all others.
void judge_unmatched(const Expected& expected, std::vector<diff::TimeGroup> unmatched,
                     TimeDifference& difference) {
  const diff::TimeGroup& others = expected.other_times;
  difference.rest.before = others;
  const bool knows_all = others.runs == 0;
  const Nanoseconds most = std::min(others.time, expected.times.back().time);
  for (const diff::TimeGroup& group : unmatched) {
    if (!knows_all) {
      add(difference.rest.now, group);
      if (group.time <= most) continue;
    }
    diff::TimeGroup before = group;
    before.runs = 0;
    before.time = knows_all ? Nanoseconds{} : most;
    difference.changes.push_back({before, group, knows_all, false, !knows_all});
  }
}

}  // namespace

TimeDifference difference_of_times(const Expected& expected, const ExperimentOutcome& outcome) {
  TimeDifference difference;
  if (expected.times.empty()) return difference;  // the baseline does not say
  std::vector<diff::TimeGroup> unmatched = outcome.times;
  for (const diff::TimeGroup& before : expected.times) {
    const auto found = std::ranges::find_if(
        unmatched, [&](const diff::TimeGroup& group) { return is_same(group, before); });
    if (found == unmatched.end()) {
      diff::TimeGroup nothing = before;
      nothing.runs = 0;
      nothing.time = Nanoseconds{};
      difference.changes.push_back({before, nothing, false, true});
    } else {
      difference.changes.push_back({before, *found});
      unmatched.erase(found);
    }
  }
  judge_unmatched(expected, std::move(unmatched), difference);
  std::erase_if(difference.changes,
                [](const TimeChange& change) { return change.change() == Nanoseconds{}; });
  std::ranges::stable_sort(difference.changes, std::greater(), [](const TimeChange& change) {
    return std::abs(change.change().count());
  });
  return difference;
}

std::string describe(const TimeChange& change) {
  const diff::TimeGroup &before = change.before, &now = change.now;
  const std::string amount = change_text(Metric::Step, change.change().count());
  const std::string what =
      name_of(now) + (now.stream == 0 ? "" : fmt::format(" on stream {}", now.stream));
  if (change.is_bound)
    return fmt::format("[NEW or longer] at least {} {} ({} runs)", amount, what, now.runs);
  if (change.is_new) return fmt::format("[NEW] {} {} ({} runs)", amount, what, now.runs);
  if (change.is_gone) return fmt::format("[GONE] {} {} ({} runs)", amount, what, before.runs);
  const std::string runs = before.runs == now.runs ? fmt::format("{}", now.runs)
                                                   : fmt::format("{} → {}", before.runs, now.runs);
  return fmt::format("{} {} ({} → {}; {} runs)", amount, what, to_text(before.time),
                     to_text(now.time), runs);
}

}  // namespace tidemark::regression
