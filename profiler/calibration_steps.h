// The steps that a calibration measures, and those that show afterwards how good it is.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "traces/trace.h"

namespace tidemark::profiler {

struct CalibrationStep {
  std::string name;  ///< "vit of width 256, 1 block, batch 4, fp32"
  Trace trace;
};

/// Networks of every family, in every precision, their work a factor of four apart. Between them
/// and the strategies, every kernel runs. On the CPU they are small, from operands that fit a cache
/// to large ones; on a device they are what fills it: widths from 768 to 4096, batches of 8 to 64.
std::vector<CalibrationStep> calibration_steps(Ground ground);
inline constexpr std::array calibration_strategies = {"vanilla", "mesa", "mesa:delayed",
                                                      "lowmemorybp", "reversible"};

/// Networks of other sizes; on a device those that people train.
std::vector<CalibrationStep> held_out_steps(Ground ground);

}  // namespace tidemark::profiler
