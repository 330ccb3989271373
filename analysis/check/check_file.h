// A tidemark.json: experiments, written by people, and what they are expected to give, written by
// `tidemark check --update`. docs/check.md says what every key means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/check/baseline.h"
#include "analysis/check/json_places.h"

namespace tidemark::regression {

struct CheckFile {
  std::string path;  ///< as given, for messages
  std::string text;
  std::size_t peak_groups = 8;  ///< how many groups of each peak a baseline keeps
  std::vector<Experiment> experiments;
  std::optional<Baseline> baseline;  ///< unset before the first update
  JsonPlaces places;
};

/// Throws InputError; `path` is only a name.
CheckFile read_check_file(std::string text, const std::string& path);

/// The text of the file with another baseline. What people wrote stays to the byte.
std::string with_baseline(const CheckFile& file, const Baseline& baseline);

/// What the file will expect of these outcomes, one per experiment.
Baseline baseline_of(const CheckFile& file, const std::vector<ExperimentOutcome>& outcomes,
                     std::string_view tidemark_version);

/// Told after each experiment how many of all are done.
using CheckProgress = std::function<void(std::size_t done, std::size_t all)>;

/// An updated file: as it was read, and what was written.
struct Update {
  CheckFile before;
  CheckFile after;
  std::vector<ExperimentOutcome> outcomes;
};

/// Runs the experiments of the file at `path` and replaces its baseline. Updates of one folder wait
/// for each other, for a minute at most, and a file that somebody edits in the meantime is left as
/// it is. Throws InputError.
Update update_check_file(const std::string& path, std::string_view tidemark_version,
                         const CheckProgress& progress = {});

}  // namespace tidemark::regression
