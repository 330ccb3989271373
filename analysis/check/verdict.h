// Compares what experiments give with what they are expected to give, and says what grew and where.
#pragma once

#include <string>
#include <vector>

#include "analysis/check/check_file.h"

namespace tidemark::regression {

enum class FindingKind : std::uint8_t {
  Grew,            ///< a number is above its tolerance
  Shrank,          ///< a number is below its tolerance: better, and still to be reviewed
  NotComparable,   ///< the baseline was made by other rules or for another question
  ModelChanged,    ///< the trace is another one, and the tolerances allow no change
  NewExperiment,   ///< the baseline does not know it
  GoneExperiment,  ///< only the baseline knows it
  DoesNotFit,      ///< it exceeds its budget
  Applies,         ///< the strategy began, or ceased, to apply
  NotMeasured,     ///< the measured result lacks a number
  StepChanged,     ///< the numbers are of another batch or input size
  CannotRun,       ///< its entry, model, device or result cannot be read
};

struct FindingRow {
  FindingKind value;
  std::string_view name;  ///< as a rule's id
  std::string_view help;
};

inline constexpr std::array finding_rows = {
    FindingRow{FindingKind::Grew, "grew", "A number is larger than expected."},
    FindingRow{FindingKind::Shrank, "shrank",
               "A number is smaller than expected: record it, so that it stays so."},
    FindingRow{FindingKind::NotComparable, "not-comparable",
               "The expected numbers were made by other rules or for another question."},
    FindingRow{FindingKind::ModelChanged, "model-changed",
               "The model is not the one that the expected numbers are of."},
    FindingRow{FindingKind::NewExperiment, "new-experiment",
               "The experiment has no expected numbers yet."},
    FindingRow{FindingKind::GoneExperiment, "gone-experiment",
               "Numbers are expected of an experiment that is not listed."},
    FindingRow{FindingKind::DoesNotFit, "does-not-fit", "The experiment exceeds its budget."},
    FindingRow{FindingKind::Applies, "applies",
               "The strategy began, or ceased, to apply to the model."},
    FindingRow{FindingKind::NotMeasured, "not-measured",
               "A number is expected that the measured result does not have."},
    FindingRow{FindingKind::StepChanged, "step-changed",
               "The expected numbers are of another batch or input size."},
    FindingRow{FindingKind::CannotRun, "cannot-run",
               "The experiment, its model, its device or its result cannot be read."}};
static_assert(is_in_order(finding_rows));
constexpr std::string_view to_string(FindingKind kind) {
  return finding_rows[static_cast<std::size_t>(kind)].name;
}

/// One thing that is wrong.
struct Finding {
  FindingKind kind;
  std::string text;      ///< one sentence
  std::size_t line = 1;  ///< of the check file
};

/// One number, expected and now.
struct MetricVerdict {
  Metric metric{};
  std::optional<std::int64_t> expected, now;
  Tolerance tolerance;
  bool is_checked = true;
  bool is_outside = false;
};

/// A group of tensors at the peak that is not what it was.
struct PeakChange {
  PeakGroup before, now;  ///< tensors = 0 where it did not, or does not, exist
  bool is_new = false, is_gone = false;
  /// The baseline kept only its largest groups, and this was not one of them: `before` is the most
  /// that it can have been, and `rest` counts it, too.
  bool is_bound = false;

  Bytes change() const { return now.bytes - before.bytes; }
};

/// A group of runs that does not take the time that it took. Read as PeakChange.
struct TimeChange {
  diff::TimeGroup before, now;
  bool is_new = false, is_gone = false, is_bound = false;

  Nanoseconds change() const { return now.time - before.time; }
};

struct ExperimentVerdict {
  std::string id;
  std::size_t line = 1;  ///< of the experiment, or of what is expected of it if it is gone
  std::string was;       ///< its id in the baseline, where that is another
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< worth knowing, and no reason to fail
  std::vector<MetricVerdict> metrics;
  std::string refusal;  ///< why the strategy does not apply
  bool is_compared = false;

  // The peaks, where the live bytes or the composition differ.
  std::string peak_before, peak_now;
  std::vector<PeakChange> changes;  ///< by size of change; of groups that the baseline kept
  PeakChange rest;                  ///< all others together
  std::string cause;                ///< the change that explains most, in one sentence; or ""

  // The step, where its time is outside its tolerance.
  std::vector<TimeChange> time_changes;
  TimeChange time_rest;
  std::string time_cause;

  bool failed() const { return !findings.empty(); }
};

struct CheckReport {
  std::string path;
  std::string tidemark;           ///< the version that runs
  std::string expected_tidemark;  ///< the one that wrote the baseline; "" if there is none
  std::vector<Finding> findings;  ///< about the baseline as a whole: then nothing is compared
  std::vector<ExperimentVerdict> experiments;

  std::size_t failures() const;  ///< experiments with findings
  std::size_t defects() const;   ///< experiments that cannot be run
  std::size_t compared() const;
  bool failed() const { return !findings.empty() || failures() > 0; }
};

/// What to compare beside the numbers.
struct CheckRules {
  std::string tidemark;  ///< version of this program
  bool allows_new = false;
};

CheckReport compare_with_baseline(const CheckFile& file,
                                  const std::vector<ExperimentOutcome>& outcomes,
                                  const CheckRules& rules);

}  // namespace tidemark::regression
