// The steps that a calibration measures, and those that show afterwards how good it is.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark::profiler {

struct CalibrationStep {
  std::string name;  ///< "vit of width 256, 1 block, batch 4, fp32"
  Trace trace;
};

/// Small networks of every family, their work a factor of four apart, from operands that fit a
/// cache to large ones, in every precision. Between them and the strategies, every kernel runs.
std::vector<CalibrationStep> calibration_steps();
inline constexpr std::array calibration_strategies = {"vanilla", "mesa", "lowmemorybp",
                                                      "reversible"};

/// Networks of other sizes.
std::vector<CalibrationStep> held_out_steps();

}  // namespace tidemark::profiler
