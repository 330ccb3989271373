// How far two sets of gradients are apart.
#pragma once

#include "profiler/merged_affine.h"

namespace tidemark::profiler {

struct GradientDifference {
  /// Of all parameters together: ‖found − reference‖ / ‖reference‖. Its squares add up where
  /// errors are independent, as those of stochastic rounding are.
  double overall = 0;
  double largest = 0;         ///< over parameters; both infinite if one is not finite or missing
  std::string parameter;      ///< that has it
  bool bit_identical = true;  ///< all of them, in name and value
};

/// ‖found − reference‖ / ‖reference‖ per parameter. Some gradients are zero in exact arithmetic (a
/// key's bias shifts all scores of a softmax alike), and what is left of them is rounding: where a
/// parameter's gradient is below a thousandth of what the others have per element, that thousandth
/// is the scale.
GradientDifference gradient_difference(const NamedValues& found, const NamedValues& reference);

}  // namespace tidemark::profiler
