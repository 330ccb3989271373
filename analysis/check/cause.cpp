// Names the largest change in the number's own direction, or else where the change comes from.
#include "analysis/check/cause.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/check/peak_changes.h"
#include "analysis/check/time_changes.h"

namespace tidemark::regression {
namespace {

// Why a number differs although the live peak does not.
std::string packing_cause(const ExperimentVerdict& verdict) {
  const auto outside = std::ranges::find_if(verdict.metrics, [](const MetricVerdict& metric) {
    return metric.is_outside && metric.metric != Metric::Step;
  });
  if (outside == verdict.metrics.end()) return "";
  if (outside->metric == Metric::Planned)
    return "the live peak is the same; tensors pack differently into the arena";
  return "the live peak is the same; the allocator rounds, splits or caches differently";
}

}  // namespace

std::string memory_cause(const ExperimentVerdict& verdict, Bytes live) {
  if (live == Bytes{}) return packing_cause(verdict);
  const std::string head = fmt::format("at the peak, {}: of {}, ", verdict.peak_now,
                                       change_text(Metric::Live, live.count));
  // The largest change in the direction of the peak's.
  for (const PeakChange& change : verdict.changes)
    if ((change.change().count > 0) == (live.count > 0) && change.change() != Bytes{})
      return head + describe(change);
  return head +
         "all is in the small groups that the baseline keeps as one (raise peak_groups to tell "
         "them apart)";
}

std::string time_cause(const ExperimentVerdict& verdict, Nanoseconds step) {
  const std::string head =
      fmt::format("in the step: of {}, ", change_text(Metric::Step, step.count()));
  for (const TimeChange& change : verdict.time_changes)
    if ((change.change().count() > 0) == (step.count() > 0)) return head + describe(change);
  if (verdict.time_rest.before.time != verdict.time_rest.now.time)
    return head +
           "all is in the short groups that the baseline keeps as one (raise peak_groups to tell "
           "them apart)";
  return head +
         "none is in the runs: streams overlap, or wait for each other or the host, in another way";
}

// A finding begins with the name of its number.
const std::string& cause_of(const ExperimentVerdict& verdict, const Finding& finding) {
  const bool is_about_time =
      finding.text.starts_with(fmt::format("{} ", row_of(Metric::Step).name));
  return is_about_time ? verdict.time_cause : verdict.cause;
}

}  // namespace tidemark::regression
