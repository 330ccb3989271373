// Elements of a head that are complex numbers, turned by products with others: ATen's mul, which
// reads and writes each once.
#pragma once

#include "traces/formula.h"
#include "traces/trace.h"

namespace tidemark {

inline bool turns_pairs(const OpaqueRow& row) { return row.computes == Formula::TurnPairs; }
inline bool turns_pairs(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row && turns_pairs(*row);
}

}  // namespace tidemark
