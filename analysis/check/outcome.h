// Runs the experiments of a check, on all cores.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/check/experiment.h"
#include "analysis/check/peak_groups.h"
#include "analysis/diff/time_groups.h"

namespace tidemark::regression {

/// What must be equal for two results to be comparable, beside the trace: by key.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// What people tell two versions of a model by.
struct ModelSize {
  std::int64_t parameters = 0, blocks = 0, ops = 0;
  std::vector<std::string> block_names = {};  ///< as ranges: "blocks.0-11"

  bool operator==(const ModelSize&) const = default;
};

/// What one experiment gives now.
struct ExperimentOutcome {
  Settings settings;
  std::string trace;  ///< its fingerprint; "" for a measured result
  std::string plan;   ///< that of the plan file; "" for a strategy
  ModelSize model;
  std::vector<std::string> blocks;  ///< names, in the order of the trace
  std::string defect;               ///< why it could not be run; then there is nothing else
  std::string refusal;              ///< why the strategy does not apply; then there are no numbers
  Values values;
  Bytes available;      ///< with a budget: of it, less the reserve
  bool fits = true;     ///< only asked with a budget
  Bytes short_by;       ///< 0 where fragmentation keeps it out
  std::string peak_at;  ///< "backward of blocks.11.mlp.gelu"
  std::vector<PeakGroup> peak;
  std::vector<diff::TimeGroup> times;  ///< longest first; only if the step's time is checked
};

/// In the order of the experiments. `check_file` is where they stand; relative paths begin there.
/// `progress` is told how many are done, never by two threads at once. What is wrong with one
/// experiment is its defect, and the others run.
std::vector<ExperimentOutcome> run_experiments(
    const std::string& check_file, const std::vector<Experiment>& experiments,
    const std::function<void(std::size_t done)>& progress = {});

}  // namespace tidemark::regression
