// What a check runs: the experiments that a tidemark.json lists, sweeps expanded.
#pragma once

#include <string>
#include <vector>

#include "analysis/check/metric.h"
#include "base/json_reader.h"
#include "simulator/allocator/allocator_settings.h"
#include "simulator/cost/usual_device.h"
#include "simulator/strategies/strategy.h"
#include "traces/step_options.h"

namespace tidemark::regression {

/// One model, step, device and strategy, with what is asked of them.
struct Experiment {
  std::string id;
  std::string pointer;  ///< of the entry in the file that it comes from
  std::string defect;   ///< why its entry cannot be read; then there is nothing else

  std::string model;  ///< as written: a preset, a config or a trace file
  StepOptions step;
  std::string device = std::string(usual_device);
  StrategySpec strategy;       ///< text "" = that of the measured result
  std::string plan;            ///< path of a plan file, as written; "" = the strategy's own plan
  std::string allocator_text;  ///< as written
  allocator::AllocatorSettings allocator;
  std::string measured;  ///< path of a replay's result, as written; "" = simulated

  bool must_fit = false;              ///< a budget is stated
  std::optional<Bytes> budget;        ///< unset: the device's own memory less its CUDA context
  Tolerance reserve;                  ///< of the budget, to be left free
  PerMetric<bool> checked{};          ///< which numbers are compared
  PerMetric<Tolerance> tolerances{};  ///< 0 unless stated
};

/// A path as the check file means it: relative to the folder of that file. A name stays a name.
std::string resolved(const std::string& check_file, const std::string& name_or_path);

bool is_trace_path(std::string_view path);

/// Expands the list at `experiments`, with what `defaults` (may be empty) states for all. An entry
/// with something unknown or contradictory becomes one experiment with a defect. Throws InputError
/// where none is listed, too many are, or two have one id.
std::vector<Experiment> read_experiments(const JsonView& experiments,
                                         const std::optional<JsonView>& defaults);

}  // namespace tidemark::regression
