// Of a pipeline stage: the micro-batches of which all is kept while another one is taken.
#pragma once

#include <cstdint>
#include <memory>

#include "traces/trace.h"

namespace tidemark {

/// As many others at most, whose forward is done and whose backward is not. Stages without others
/// take one micro-batch after the other, and so does a step without stages.
struct BatchesInFlight {
  std::int64_t others = 0;        ///< while a forward runs, and while the first backward does
  std::int64_t others_later = 0;  ///< while a later backward does, beside gradients
  /// Does a forward run with gradients there, beside all others?
  bool forwards_later() const { return others_later == others; }
};

/// Of schedules whose stages have one chunk and whose backwards are whole.
BatchesInFlight in_flight_of(const StepOptions& step);

/// The same stage with so many micro-batches at most, one after the other.
std::shared_ptr<const Trace> one_after_another(const std::shared_ptr<const Trace>& trace,
                                               std::int64_t most);

}  // namespace tidemark
