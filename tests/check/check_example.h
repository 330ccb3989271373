// Small check files and ready outcomes: what several tests begin with.
#pragma once

#include <string>

#include "analysis/check/check_file.h"

namespace tidemark::regression {

/// A check file with these experiments (the items of a JSON list) and, unless empty, more members.
inline std::string check_text(const std::string& experiments, const std::string& more = "") {
  return "{\n  \"format\": \"tidemark-check\",\n  \"version\": 1,\n" + more +
         "  \"experiments\": [\n    " + experiments + "\n  ]\n}\n";
}

inline CheckFile check_file(const std::string& experiments, const std::string& more = "") {
  return read_check_file(check_text(experiments, more), "tidemark.json");
}

/// An outcome with five numbers and a peak of two groups that add up to the live bytes.
inline ExperimentOutcome small_outcome() {
  ExperimentOutcome outcome;
  outcome.settings = {{"model", "vit-ti-16"}, {"strategy", "vanilla"}};
  outcome.trace = "00000000000000aa";
  outcome.values = {1000, 1100, 1200, 2048, 5000};
  outcome.peak_at = "backward of blocks.1.mlp.gelu";
  outcome.peak = {{"blocks.*.mlp.gelu", "activation", "gelu", "keep", 2, Bytes{700}, "kept"},
                  {"head.weight", "parameter", "", "persistent", 1, Bytes{300}}};
  return outcome;
}

/// The same file, expecting these outcomes of its experiments.
inline CheckFile expecting(const CheckFile& file, const std::vector<ExperimentOutcome>& outcomes,
                           const std::string& version = "1.0.0") {
  return read_check_file(with_baseline(file, baseline_of(file, outcomes, version)), file.path);
}

}  // namespace tidemark::regression
