// What the operands of an opaque op must look like that says what it computes.
#pragma once

#include "traces/shape_fit.h"

namespace tidemark {

/// True if they fit; else the defect stands in `fit`. An op without a formula may have any.
bool fits_formula(Fit& fit);

}  // namespace tidemark
