// A check file (docs/check.md) in the window: its experiments, run beside the drawing and compared
// with what was expected of them.
#pragma once

#include "analysis/check/verdict.h"
#include "gui/newest.h"
#include "gui/what_if.h"

namespace tidemark::gui {

struct CheckedBaseline {
  std::optional<regression::CheckFile> file = {};
  regression::CheckReport report = {};
  std::string problem = {};  ///< why the file cannot be read; then there is nothing else
};

/// Is this a check file, by its first lines?
bool is_check_file(const std::string& path);

/// What the experiment asks, as inputs of the window. InputError where it cannot be read or was
/// measured elsewhere.
WhatIf inputs_of(const std::string& check_file, const regression::Experiment& experiment);

/// The experiment that a verdict is about; null if the file lists it no more.
const regression::Experiment* experiment_of(const CheckedBaseline& baseline,
                                            const regression::ExperimentVerdict& verdict);

/// "+1.2 GiB allocated, +4.1 % step": the numbers that moved; "as expected", or what is wrong.
std::string moved_text(const regression::ExperimentVerdict& verdict);

/// Runs the experiments of the file at a path.
class Baselines : public Newest<std::string, CheckedBaseline> {
 public:
  Baselines();
};

}  // namespace tidemark::gui
