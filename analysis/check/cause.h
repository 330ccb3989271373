// Why a number is not what it was, in one sentence each.
#pragma once

#include "analysis/check/verdict.h"

namespace tidemark::regression {

/// Of the memory numbers: the change at the peak that explains most of `live`, the change of the
/// live peak; or, if that is 0, why another number differs nevertheless.
std::string memory_cause(const ExperimentVerdict& verdict, Bytes live);

/// What the verdict says why, of a finding about a number.
const std::string& cause_of(const ExperimentVerdict& verdict, const Finding& finding);

/// Of the step's time, which changed by `step`.
std::string time_cause(const ExperimentVerdict& verdict, Nanoseconds step);

}  // namespace tidemark::regression
