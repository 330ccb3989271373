// A step of few micro-batches, of which the last rounds are alike, says what more of them take.
#pragma once

#include "analysis/report_totals.h"

namespace tidemark {

/// What is known of a step with so many rounds more.
struct RepeatedStep {
  StepTimes times;
  allocator::RepeatedCalls calls;
};

/// A round takes `each` micro-batches. Nothing if what the last two rounds do, or when, differs.
std::optional<RepeatedStep> repeated_step(const Evaluation& made, const StepTotals& totals,
                                          std::int64_t each, std::int64_t rounds);

}  // namespace tidemark
