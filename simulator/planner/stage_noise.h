// What a plan's choices make of the gradients.
#pragma once

#include <cmath>

#include "simulator/noise/gradient_noise.h"
#include "simulator/planner/local_plan.h"

namespace tidemark {

/// Relative squares, of the gradients of all parameters together. Of several stages they add up.
struct GradientError {
  double codes = 0;      ///< noise of what is kept in codes: zero on average
  double operators = 0;  ///< of operators with other gradients than their own: the same each step

  GradientError& operator+=(const GradientError& other) {
    codes += other.codes, operators += other.operators;
    return *this;
  }
  double square() const { return codes + operators; }
  /// ‖g − exact‖ / ‖exact‖; infinite where something was never measured.
  double overall() const { return std::sqrt(square()); }
};

GradientError stage_error(const GradientNoise& noise, const Stage& stage, const LocalPlan& local);

}  // namespace tidemark
