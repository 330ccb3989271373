// Pairs experiments with expectations by id, compares them within tolerances, and lists findings.
#include "analysis/check/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/check/block_names.h"
#include "analysis/check/cause.h"
#include "analysis/check/peak_changes.h"
#include "analysis/check/settings_change.h"
#include "analysis/check/time_changes.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::regression {
namespace {

std::string sentence(const MetricVerdict& metric) {
  const std::int64_t change = *metric.now - *metric.expected;
  return fmt::format("{} {} from {} to {} ({}, {}; tolerance {})", row_of(metric.metric).name,
                     change > 0 ? "grew" : "shrank", to_text(metric.metric, *metric.expected),
                     to_text(metric.metric, *metric.now), change_text(metric.metric, change),
                     percent_text(*metric.expected, change),
                     to_text(metric.metric, metric.tolerance));
}

void add_finding(std::vector<Finding>& findings, FindingKind kind, std::string_view text,
                 std::size_t line) {
  Finding& finding = findings.emplace_back();
  finding.kind = kind;
  finding.text = text;
  finding.line = line;
}

std::string new_blocks(const std::vector<std::string>& known,
                       const std::vector<std::string>& blocks) {
  std::vector<std::string> names;
  for (const std::string& block : blocks)
    if (!known.empty() && !is_in_ranges(known, block)) names.push_back(block);
  return fmt::format("{}", fmt::join(block_ranges(names), ", "));
}

// "86567656 → 93655528 parameters, 12 → 13 blocks, 400 → 433 ops (new: blocks.12)"
std::string describe_sizes(const std::optional<ModelSize>& before, const ModelSize& now,
                           const std::vector<std::string>& blocks) {
  if (!before) return fmt::format("it has {} parameters", now.parameters);
  std::string text;
  const auto add = [&](std::int64_t ModelSize::*count, const char* name) {
    if ((*before).*count != now.*count)
      text +=
          fmt::format("{}{} → {} {}", text.empty() ? "" : ", ", (*before).*count, now.*count, name);
  };
  add(&ModelSize::parameters, "parameters");
  add(&ModelSize::blocks, "blocks");
  add(&ModelSize::ops, "ops");
  if (const std::string names = new_blocks(before->block_names, blocks); !names.empty())
    text += fmt::format(" (new: {})", names);
  return text.empty() ? "as many parameters, blocks and ops, but not the same" : text;
}

bool has_same_size(const std::optional<ModelSize>& before, const ModelSize& now) {
  return before && before->parameters == now.parameters && before->blocks == now.blocks &&
         before->ops == now.ops;
}

/// Compares one experiment with its entry in the baseline.
class Comparer {
 public:
  Comparer(const CheckFile& file, const Experiment& experiment, const ExperimentOutcome& outcome,
           ExperimentVerdict& verdict)
      : file_(file), experiment_(experiment), outcome_(outcome), verdict_(verdict) {}

  void compare(const Expected& expected) {
    line_ = file_.places.line_of(expected.pointer);
    if (!asks_the_same(expected)) return;
    verdict_.is_compared = true;
    compare_applicability(expected);
    if (!expected.refusal.empty() || !outcome_.refusal.empty()) return;
    compare_metrics(expected);
    compare_models(expected);
    compare_plans(expected);
    compare_peaks(expected);
  }

  void report_metrics() {
    for (const MetricRow& row : metrics) {
      const std::size_t i = index(row.value);
      if (outcome_.values[i])
        verdict_.metrics.push_back(
            {row.value, {}, outcome_.values[i], experiment_.tolerances[i], false, false});
    }
  }

 private:
  void find(FindingKind kind, std::string_view text, std::size_t line) {
    add_finding(verdict_.findings, kind, text, line);
  }

  // Another batch is another question whose numbers are worth comparing; another device is not.
  bool asks_the_same(const Expected& expected) {
    const std::vector<SettingChange> changes = changes_of(expected.settings, outcome_.settings);
    if (changes.empty()) return true;
    if (are_sizes_of_the_step(changes)) {
      is_step_changed_ = true;
      find(FindingKind::StepChanged,
           fmt::format("the step changed: {}{}", describe(changes),
                       verdict_.was.empty() ? "" : fmt::format(" (it was {})", verdict_.was)),
           line_);
      return true;
    }
    find(FindingKind::NotComparable,
         fmt::format("not compared, the settings changed: {}", describe(changes)), line_);
    report_metrics();
    return false;
  }

  void compare_applicability(const Expected& expected) {
    if (expected.refusal.empty() == outcome_.refusal.empty()) return;
    find(FindingKind::Applies,
         outcome_.refusal.empty()
             ? fmt::format("the strategy applies now; it did not ({})", expected.refusal)
             : fmt::format("the strategy does not apply any more: {}", outcome_.refusal),
         line_);
  }

  void compare_metrics(const Expected& expected) {
    for (const MetricRow& row : metrics) {
      const std::size_t i = index(row.value);
      MetricVerdict metric{row.value, expected.values[i], outcome_.values[i],
                           experiment_.tolerances[i], experiment_.checked[i]};
      if (!metric.expected && !metric.now) continue;
      const std::size_t line =
          file_.places.line_of(expected.pointer + "/values/" + std::string(row.name), line_);
      if (metric.is_checked) judge(metric, line);
      verdict_.metrics.push_back(metric);
    }
  }

  void judge(MetricVerdict& metric, std::size_t line) {
    const std::string_view name = row_of(metric.metric).name;
    if (!metric.now) {
      metric.is_outside = true;
      return find(FindingKind::NotMeasured, fmt::format("{} was not measured", name), line);
    }
    if (!metric.expected) {
      metric.is_outside = true;
      return find(FindingKind::NewExperiment,
                  fmt::format("{} has no expected number (update the baseline)", name), line);
    }
    const std::int64_t change = *metric.now - *metric.expected;
    if (std::abs(change) <= allowed(metric.tolerance, *metric.expected)) return;
    metric.is_outside = true;
    find(change > 0 ? FindingKind::Grew : FindingKind::Shrank, sentence(metric), line);
  }

  bool allows_drift() const {
    for (std::size_t i = 0; i < metrics.size(); ++i)
      if (experiment_.checked[i] && experiment_.tolerances[i] != Tolerance{}) return true;
    return false;
  }

  // Where nothing may differ, another model is not compared in silence; where a tolerance allows
  // for change, a changed model is what the tolerance is for.
  void compare_models(const Expected& expected) {
    // Another batch alone makes another trace of the same model.
    if (is_step_changed_ && has_same_size(expected.model, outcome_.model)) return;
    if (expected.trace == outcome_.trace) return;
    const std::string text =
        fmt::format("the model changed: {} (its trace is {}, expected {})",
                    describe_sizes(expected.model, outcome_.model, outcome_.blocks), outcome_.trace,
                    expected.trace.empty() ? "none" : expected.trace);
    if (allows_drift()) {
      verdict_.notes.push_back(text);
    } else {
      find(FindingKind::ModelChanged, text,
           file_.places.line_of(expected.pointer + "/trace", line_));
    }
  }

  // Said and no more: what a plan changes shows in the numbers, and its reasons change none. A
  // baseline may be older than the plan's fingerprint.
  void compare_plans(const Expected& expected) {
    if (expected.plan.empty() || expected.plan == outcome_.plan) return;
    verdict_.notes.push_back(
        fmt::format("the plan changed: {} (the fingerprint of its file is {}, expected {})",
                    printable(experiment_.plan), outcome_.plan, expected.plan));
  }

  void compare_peaks(const Expected& expected) {
    if (expected.peak_at.empty() || outcome_.peak_at.empty()) return;
    verdict_.peak_before = expected.peak_at;
    verdict_.peak_now = outcome_.peak_at;
    PeakDifference difference = difference_of_peaks(expected, outcome_);
    verdict_.changes = std::move(difference.changes);
    verdict_.rest = difference.rest;
    if (verdict_.failed()) explain(expected);
  }

  void explain(const Expected& expected) {
    const auto change_of = [&](Metric metric) {
      return outcome_.values[index(metric)].value_or(0) -
             expected.values[index(metric)].value_or(0);
    };
    verdict_.cause = memory_cause(verdict_, Bytes{change_of(Metric::Live)});
    const bool is_step_outside =
        std::ranges::any_of(verdict_.metrics, [](const MetricVerdict& metric) {
          return metric.metric == Metric::Step && metric.is_outside;
        });
    if (!is_step_outside) return;
    if (expected.times.empty()) {
      if (verdict_.cause.empty())
        verdict_.cause = "the live peak is the same; only the time changed";
      return;
    }
    TimeDifference difference = difference_of_times(expected, outcome_);
    verdict_.time_changes = std::move(difference.changes);
    verdict_.time_rest = difference.rest;
    verdict_.time_cause = time_cause(verdict_, Nanoseconds{change_of(Metric::Step)});
  }

  const CheckFile& file_;
  const Experiment& experiment_;
  const ExperimentOutcome& outcome_;
  ExperimentVerdict& verdict_;
  std::size_t line_ = 1;
  bool is_step_changed_ = false;
};

void judge_budget(const CheckFile& file, const Experiment& experiment,
                  const ExperimentOutcome& outcome, ExperimentVerdict& verdict) {
  if (outcome.fits) return;
  const std::size_t line = file.places.line_of(experiment.pointer + "/budget", verdict.line);
  const std::string what = outcome.short_by == Bytes{} ? std::string("fragmentation keeps it out")
                                                       : to_text(outcome.short_by) + " short";
  verdict.findings.push_back(
      {FindingKind::DoesNotFit,
       fmt::format("does not fit in {}{}: {}", to_text(outcome.available),
                   experiment.reserve == Tolerance{}
                       ? ""
                       : fmt::format(", the budget less a reserve of {}",
                                     to_text(Metric::Live, experiment.reserve)),
                   what),
       line});
}

void judge_whole(const CheckFile& file, const CheckRules& rules, CheckReport& report) {
  const auto find = [&](FindingKind kind, std::string_view text, const char* pointer) {
    add_finding(report.findings, kind, text, file.places.line_of(pointer));
  };
  if (!file.baseline) {
    if (!rules.allows_new)
      find(FindingKind::NewExperiment,
           "there is no baseline yet (tidemark check --update writes one)", "/experiments");
    return;
  }
  const Baseline& baseline = *file.baseline;
  report.expected_tidemark = baseline.tidemark;
  if (baseline.tidemark != rules.tidemark)
    find(FindingKind::NotComparable,
         fmt::format("not compared: tidemark {} wrote the baseline and this is {} (update the "
                     "baseline, or use that version)",
                     baseline.tidemark, rules.tidemark),
         "/expected/tidemark");
  if (baseline.allocator_rules != allocator_rules)
    find(FindingKind::NotComparable,
         fmt::format("not compared: the baseline follows the allocator rules {} and this is {} "
                     "(update the baseline)",
                     baseline.allocator_rules, allocator_rules),
         "/expected/allocator_rules");
}

void judge_gone(const CheckFile& file, const Expected& expected, CheckReport& report) {
  ExperimentVerdict verdict;
  verdict.id = expected.id;
  verdict.line = file.places.line_of(expected.pointer);
  add_finding(verdict.findings, FindingKind::GoneExperiment,
              "numbers are expected of it, but it is not listed (list it, or update the baseline)",
              verdict.line);
  report.experiments.push_back(std::move(verdict));
}

/// What is expected of each experiment, if anything; and what of none.
struct Pairing {
  std::vector<const Expected*> expected;
  std::vector<const Expected*> gone;
};

// By id. The ids of most experiments tell their batch, so what is left on both sides and differs in
// nothing but the size of its step is the same experiment, too: the first with the first.
Pairing pair_up(const CheckFile& file, const std::vector<ExperimentOutcome>& outcomes) {
  Pairing pairing{std::vector<const Expected*>(outcomes.size()), {}};
  std::map<std::string_view, std::size_t> by_id;
  for (std::size_t i = 0; i < outcomes.size(); ++i) by_id.emplace(file.experiments[i].id, i);
  std::multimap<std::string, std::size_t> by_settings;
  std::vector<const Expected*> unknown;
  for (const Expected& entry : file.baseline->experiments) {
    const auto found = by_id.find(entry.id);
    if (found == by_id.end()) {
      unknown.push_back(&entry);
    } else {
      pairing.expected[found->second] = &entry;
    }
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (!pairing.expected[i] && outcomes[i].defect.empty())
      by_settings.emplace(without_sizes_of_the_step(outcomes[i].settings), i);
  for (const Expected* entry : unknown) {
    const auto [begin, end] = by_settings.equal_range(without_sizes_of_the_step(entry->settings));
    const auto found = std::find_if(begin, end, [&](const auto& candidate) {
      return !changes_of(entry->settings, outcomes[candidate.second].settings).empty();
    });
    if (found == end) {
      pairing.gone.push_back(entry);
      continue;
    }
    pairing.expected[found->second] = entry;
    by_settings.erase(found);
  }
  // What an entry with a defect would list is not known to be gone.
  if (std::ranges::any_of(file.experiments, [](const auto& one) { return !one.defect.empty(); }))
    pairing.gone.clear();
  return pairing;
}

void judge_defect(const CheckFile& file, std::string_view defect, ExperimentVerdict& verdict) {
  const std::string prefix = file.path + ": ";
  if (defect.starts_with(prefix)) defect.remove_prefix(prefix.size());
  add_finding(verdict.findings, FindingKind::CannotRun, fmt::format("cannot be run: {}", defect),
              verdict.line);
}

ExperimentVerdict judge_one(const CheckFile& file, std::size_t i, const ExperimentOutcome& outcome,
                            bool is_comparable, const Expected* expected, const CheckRules& rules) {
  const Experiment& experiment = file.experiments[i];
  ExperimentVerdict verdict;
  verdict.id = experiment.id;
  verdict.line = file.places.line_of(experiment.pointer);
  verdict.refusal = outcome.refusal;
  if (!outcome.defect.empty()) {
    judge_defect(file, outcome.defect, verdict);
    return verdict;
  }
  if (expected && expected->id != experiment.id) verdict.was = expected->id;
  Comparer comparer(file, experiment, outcome, verdict);
  if (expected) {
    comparer.compare(*expected);
  } else {
    comparer.report_metrics();
    if (is_comparable && !rules.allows_new)
      add_finding(verdict.findings, FindingKind::NewExperiment,
                  "the baseline does not know it (update the baseline, or pass --allow-new)",
                  verdict.line);
  }
  judge_budget(file, experiment, outcome, verdict);
  return verdict;
}

}  // namespace

std::size_t CheckReport::failures() const {
  return static_cast<std::size_t>(std::ranges::count_if(experiments, &ExperimentVerdict::failed));
}

std::size_t CheckReport::defects() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(experiments, [](const ExperimentVerdict& verdict) {
        return std::ranges::find(verdict.findings, FindingKind::CannotRun, &Finding::kind) !=
               verdict.findings.end();
      }));
}

std::size_t CheckReport::compared() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(experiments, &ExperimentVerdict::is_compared));
}

CheckReport compare_with_baseline(const CheckFile& file,
                                  const std::vector<ExperimentOutcome>& outcomes,
                                  const CheckRules& rules) {
  CHECK(outcomes.size() == file.experiments.size());
  CheckReport report{file.path, rules.tidemark, "", {}, {}};
  judge_whole(file, rules, report);
  const bool is_comparable = file.baseline && report.findings.empty();
  Pairing pairs = is_comparable ? pair_up(file, outcomes)
                                : Pairing{std::vector<const Expected*>(outcomes.size()), {}};
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    report.experiments.push_back(
        judge_one(file, i, outcomes[i], is_comparable, pairs.expected[i], rules));
  for (const Expected* entry : pairs.gone) judge_gone(file, *entry, report);
  return report;
}

}  // namespace tidemark::regression
