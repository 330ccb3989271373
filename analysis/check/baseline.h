// The part of a tidemark.json that `tidemark check --update` writes: what each experiment gave.
#pragma once

#include <string>
#include <vector>

#include "analysis/check/outcome.h"

namespace tidemark::regression {

/// What one experiment gave when the baseline was written.
struct Expected {
  std::string id;
  std::string pointer;  ///< "/expected/experiments/17"
  Settings settings;
  std::string trace;
  std::string plan;
  std::optional<ModelSize> model;
  std::string refusal;
  Values values;
  std::string peak_at;
  std::vector<PeakGroup> peak;  ///< the largest groups …
  std::int64_t other_tensors = 0;
  Bytes other_bytes;                   ///< … and the rest of the live peak
  std::vector<diff::TimeGroup> times;  ///< the longest groups of the step's runs …
  diff::TimeGroup other_times;         ///< … and the rest of them
};

struct Baseline {
  std::string tidemark;         ///< the version that wrote it
  std::string allocator_rules;  ///< of the model of the caching allocator
  std::vector<Expected> experiments;
};

/// Whose caching allocator the numbers follow. Changes with its rules.
inline constexpr std::string_view allocator_rules = "pytorch-2.6";

/// Throws InputError for what write_baseline() would not write.
Baseline read_baseline(const JsonView& expected);

/// What the file will expect of this outcome, with the `groups` largest groups of its peak and
/// of its time.
Expected expected_of(const std::string& id, const ExperimentOutcome& outcome, std::size_t groups);

/// The JSON text of the value of "expected": one group of lines per experiment, a blank line
/// between two, so that changes of neighbours merge. Ends without a newline.
std::string write_baseline(const Baseline& baseline);

}  // namespace tidemark::regression
