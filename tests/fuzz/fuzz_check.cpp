// Bytes → check file → compared with outcomes that nearly agree → with another baseline → read
// again. Must be read, with all that people wrote kept to the byte, or be refused in one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/check/verdict.h"
#include "base/error.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

/// What this program finds adds up, whatever a file expects.
std::int64_t plausible(std::int64_t number) { return std::min(number, std::int64_t{1} << 40); }

/// What the file expects of an experiment, with a little more of everything; or
/// nothing.
regression::ExperimentOutcome near_to(const regression::CheckFile& file, const std::string& id) {
  regression::ExperimentOutcome outcome;
  if (!file.baseline) return outcome;
  const auto& known = file.baseline->experiments;
  const auto expected = std::ranges::find(known, id, &regression::Expected::id);
  if (expected == known.end()) return outcome;
  outcome.settings = expected->settings;
  outcome.trace = expected->trace;
  if (expected->model) outcome.model = *expected->model;
  outcome.refusal = expected->refusal;
  outcome.values = expected->values;
  outcome.peak_at = expected->peak_at;
  outcome.peak = expected->peak;
  outcome.times = expected->times;
  for (auto& value : outcome.values)
    if (value) value = plausible(*value + 1);
  for (regression::PeakGroup& group : outcome.peak) {
    group.tensors = plausible(group.tensors);
    group.bytes.count = plausible(group.bytes.count + 1);
  }
  for (diff::TimeGroup& group : outcome.times) {
    group.runs = plausible(group.runs);
    group.time = Nanoseconds{plausible(group.time.count() + 1)};
  }
  return outcome;
}

std::vector<regression::ExperimentOutcome> outcomes_near_to(const regression::CheckFile& file) {
  std::vector<regression::ExperimentOutcome> outcomes;
  for (const regression::Experiment& experiment : file.experiments) {
    outcomes.push_back(near_to(file, experiment.id));
    outcomes.back().defect = experiment.defect;
  }
  return outcomes;
}

void write_and_read_again(const regression::CheckFile& file, regression::Baseline baseline) {
  baseline.tidemark += "\"\n";  // text that has to be escaped
  const std::string text = with_baseline(file, baseline);
  const regression::CheckFile again = regression::read_check_file(text, "written");
  require(again.experiments.size() == file.experiments.size());
  require(again.baseline->tidemark == baseline.tidemark);
  require(again.baseline->experiments.size() == baseline.experiments.size());
  // Writing what was read changes nothing.
  require(with_baseline(again, *again.baseline) == text);
  const regression::JsonPlace* old = file.places.find("/expected");
  require(!old || text.substr(0, old->begin) == file.text.substr(0, old->begin));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::optional<regression::CheckFile> file;
  try {
    file = regression::read_check_file(text, "fuzz");
  } catch (const InputError& error) {
    require_one_line(error.what());
    return 0;
  }
  // More would only be more of the same.
  if (file->experiments.size() > 64) return 0;
  const auto outcomes = outcomes_near_to(*file);
  const auto report =
      regression::compare_with_baseline(*file, outcomes, {.tidemark = "0", .allows_new = true});
  require(report.experiments.size() >= file->experiments.size() || !report.findings.empty());
  if (file->baseline) write_and_read_again(*file, *file->baseline);
  write_and_read_again(*file, baseline_of(*file, outcomes, "0"));
  return 0;
}
