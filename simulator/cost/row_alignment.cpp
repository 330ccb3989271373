// Of what is written once per operand: its last axis, or of a linear's weight the rows that it has.
#include "simulator/cost/row_alignment.h"

#include <numeric>

namespace tidemark {

int row_alignment(const Trace& trace, const Op& op) {
  const Work work = row_of(op.kind).work;
  if (work != Work::Linear && work != Work::BatchedProduct) return aligned_rows;
  const auto inputs = trace.inputs(op);
  const Shape& b = trace[inputs[1]].shape;
  const std::int64_t n = work == Work::Linear ? b[0] : b.back();
  const std::int64_t k = trace[inputs[0]].shape.back();
  return static_cast<int>(std::gcd(std::gcd(n, k), std::int64_t{aligned_rows}));
}

}  // namespace tidemark
