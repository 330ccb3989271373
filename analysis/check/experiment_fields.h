// The keys of an experiment, in one table: what each sets, and how it shows in the experiment's id.
#pragma once

#include <span>
#include <string>

#include "analysis/check/experiment.h"
#include "traces/step_fields.h"

namespace tidemark::regression {

/// A key that may hold one value, or a list of values to sweep over.
struct ExperimentField {
  std::string_view key;
  std::string_view plural;  ///< another name, for lists; "" if there is none
  std::string_view prefix;  ///< of its value in an id: "b" of "b64"
  const StepField* step;    ///< describes the training step, which a trace file has already
  void (*set)(Experiment& experiment, const JsonView& value);  ///< null for those of the step
};

/// In the order in which they stand in an id; the model is first.
std::span<const ExperimentField> experiment_fields();

void set(const ExperimentField& field, Experiment& experiment, const JsonView& value);

/// The value as a part of an id: "64", "amp-bf16", "examples/gpt2" for a config in that folder.
std::string label_of(const ExperimentField& field, const JsonView& value);

/// What an experiment states beside its fields: metrics, tolerances, reserve, measured.
void set_checks(Experiment& experiment, const JsonView& entry);

}  // namespace tidemark::regression
