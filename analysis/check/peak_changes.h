// What grew at the peak: two compositions matched by role.
#pragma once

#include "analysis/check/verdict.h"

namespace tidemark::regression {

struct PeakDifference {
  std::vector<PeakChange> changes;  ///< that are not zero, largest change first
  PeakChange rest;
};

/// What blocks brought that the baseline does not know is one change, under their names. The
/// changes that are no bounds add up, with the rest, to the change of the live peak.
PeakDifference difference_of_peaks(const Expected& expected, const ExperimentOutcome& outcome);

/// "blocks.*.mlp.gelu (activation of gelu): 12 × keep → …, +197 MiB": one line.
std::string describe(const PeakChange& change);

}  // namespace tidemark::regression
