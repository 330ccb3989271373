// Runs a check file as `tidemark check` does, and turns its experiments into inputs.
#include "gui/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/files.h"
#include "base/quoted.h"
#include "gui/facts.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/plan_json.h"
#include "traces/presets.h"
#include "traces/trace_json.h"

namespace tidemark::gui {
namespace {

using regression::ExperimentVerdict;
using regression::Metric;

// Experiments take milliseconds each: what is asked meanwhile waits for them.
std::shared_ptr<const CheckedBaseline> checked(const std::string& path, const Baselines::Watch&) {
  auto made = std::make_shared<CheckedBaseline>();
  try {
    const regression::CheckFile& file =
        made->file.emplace(regression::read_check_file(read_file(path, FileKind::Check), path));
    const auto outcomes = regression::run_experiments(path, file.experiments);
    // Whether another version wrote the file is said by tidemark check.
    const std::string version = file.baseline ? file.baseline->tidemark : "";
    made->report = regression::compare_with_baseline(file, outcomes, {version, false});
  } catch (const InputError& error) {
    made->problem = error.what();
  }
  return made;
}

// "+1.20 GiB live", "−5.1 % step"
std::string change_of(const regression::MetricVerdict& metric) {
  const std::string_view name = regression::metrics[index(metric.metric)].name;
  if (metric.metric == Metric::Step)
    return fmt::format(
        "{} {}",
        change_text(static_cast<double>(*metric.now) /
                    static_cast<double>(std::max<std::int64_t>(1, *metric.expected))),
        name);
  return fmt::format("{} {}", change_text(Bytes{*metric.expected}, Bytes{*metric.now}), name);
}

}  // namespace

bool is_check_file(const std::string& path) {
  constexpr std::size_t looked_at = 64 << 10;
  if (!path.ends_with(".json")) return false;
  std::ifstream file(path, std::ios::binary);
  std::string text(looked_at, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.find("\"experiments\"") != text.npos;
}

WhatIf inputs_of(const std::string& check_file, const regression::Experiment& experiment) {
  if (!experiment.defect.empty()) throw InputError(experiment.defect);
  if (!experiment.measured.empty())
    throw InputError(
        fmt::format("{} was measured: its numbers are those of {}, which is no step "
                    "that can be predicted",
                    quoted(experiment.id), experiment.measured));
  const std::string model = regression::resolved(check_file, experiment.model);
  WhatIf what_if;
  Scenario& scenario = what_if.scenario;
  scenario.device = find_device(regression::resolved(check_file, experiment.device));
  if (regression::is_trace_path(model)) {
    scenario.trace = std::make_shared<const Trace>(as_stated(load_trace(model), experiment.step));
    scenario.model = {model, scenario.trace->family, scenario.trace->model, model};
    scenario.step = scenario.trace->step;
  } else {
    scenario.model = find_model(model);
    scenario.step = completed(scenario.model, experiment.step);
  }
  if (experiment.must_fit) scenario.budget = experiment.budget;
  what_if.allocator = experiment.allocator_text;
  what_if.strategies = {experiment.plan.empty()
                            ? experiment.strategy
                            : load_plan(regression::resolved(check_file, experiment.plan))};
  if (!experiment.plan.empty()) what_if.plans = what_if.strategies;
  return what_if;
}

const regression::Experiment* experiment_of(const CheckedBaseline& baseline,
                                            const ExperimentVerdict& verdict) {
  const auto& experiments = baseline.file->experiments;
  const auto found = std::ranges::find(experiments, verdict.id, &regression::Experiment::id);
  return found == experiments.end() ? nullptr : &*found;
}

std::string moved_text(const ExperimentVerdict& verdict) {
  std::string text;
  for (const regression::MetricVerdict& metric : verdict.metrics)
    if (metric.expected && metric.now && metric.expected != metric.now)
      text += (text.empty() ? "" : ", ") + change_of(metric);
  if (!text.empty()) return text;
  return verdict.findings.empty() ? "as expected" : verdict.findings.front().text;
}

Baselines::Baselines() : Newest(checked) {}

}  // namespace tidemark::gui
