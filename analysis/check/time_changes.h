// What of a step takes longer, or shorter, than it did: its groups of runs matched by task, op and
// stream.
#pragma once

#include "analysis/check/verdict.h"

namespace tidemark::regression {

struct TimeDifference {
  std::vector<TimeChange> changes;  ///< that are not zero, largest change first
  TimeChange rest;
};

/// As with peaks: a group that the baseline did not keep is named once it is longer than it can
/// have been. The changes that are no bounds add up, with the rest, to the change of all runs.
TimeDifference difference_of_times(const Expected& expected, const ExperimentOutcome& outcome);

/// "+3.02 ms backward of linear (36.1 → 39.1 ms; 145 → 157 runs)": one line.
std::string describe(const TimeChange& change);

}  // namespace tidemark::regression
