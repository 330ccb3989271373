#include "simulator/check/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "simulator/check/cause.h"
#include "simulator/check/peak_changes.h"
#include "simulator/check/time_changes.h"
#include "traces/error.h"

namespace tidemark {
namespace {

std::string sentence(const MetricVerdict& metric) {
  const std::int64_t change = *metric.now - *metric.expected;
  return fmt::format("{} {} from {} to {} ({}, {}; margin {})", row_of(metric.metric).name,
                     change > 0 ? "grew" : "shrank", to_text(metric.metric, *metric.expected),
                     to_text(metric.metric, *metric.now), change_text(metric.metric, change),
                     percent_text(*metric.expected, change), to_text(metric.metric, metric.margin));
}

void add_finding(std::vector<Finding>& findings, FindingKind kind, std::string_view text,
                 std::size_t line) {
  Finding& finding = findings.emplace_back();
  finding.kind = kind;
  finding.text = text;
  finding.line = line;
}

// "86567656 → 93655528 parameters, 12 → 13 blocks"
std::string describe_sizes(const std::optional<ModelSize>& before, const ModelSize& now) {
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
  return text.empty() ? "as many parameters, blocks and ops, but not the same" : text;
}

/// Compares one experiment with its entry in the baseline.
class Comparer {
 public:
  Comparer(const CheckFile& file, const Experiment& experiment, const ExperimentOutcome& outcome,
           ExperimentVerdict& verdict)
      : file_(file), experiment_(experiment), outcome_(outcome), verdict_(verdict) {}

  void compare(const Expected& expected) {
    line_ = file_.places.line_of(expected.pointer);
    if (!has_same_settings(expected)) return;
    verdict_.is_compared = true;
    compare_applicability(expected);
    if (!expected.refusal.empty() || !outcome_.refusal.empty()) return;
    compare_metrics(expected);
    compare_models(expected);
    compare_peaks(expected);
  }

  void report_metrics() {
    for (const MetricRow& row : metrics) {
      const std::size_t i = index(row.value);
      if (outcome_.values[i])
        verdict_.metrics.push_back(
            {row.value, {}, outcome_.values[i], experiment_.margins[i], false, false});
    }
  }

 private:
  void find(FindingKind kind, std::string_view text, std::size_t line) {
    add_finding(verdict_.findings, kind, text, line);
  }

  bool has_same_settings(const Expected& expected) {
    std::map<std::string_view, std::pair<std::string_view, std::string_view>> values;
    for (const auto& [key, value] : expected.settings) values[key].first = value;
    for (const auto& [key, value] : outcome_.settings) values[key].second = value;
    std::string differences;
    for (const auto& [key, pair] : values) {
      if (pair.first == pair.second) continue;
      const auto shown = [](std::string_view value) { return value.empty() ? "not set" : value; };
      differences += fmt::format("{}{} ({} → {})", differences.empty() ? "" : ", ", key,
                                 shown(pair.first), shown(pair.second));
    }
    if (differences.empty()) return true;
    find(FindingKind::NotComparable,
         fmt::format("not compared, the baseline was made with another {}", differences), line_);
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
                           experiment_.margins[i], experiment_.checked[i]};
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
    if (std::abs(change) <= allowed(metric.margin, *metric.expected)) return;
    metric.is_outside = true;
    find(change > 0 ? FindingKind::Grew : FindingKind::Shrank, sentence(metric), line);
  }

  bool allows_drift() const {
    for (std::size_t i = 0; i < metrics.size(); ++i)
      if (experiment_.checked[i] && experiment_.margins[i] != Margin{}) return true;
    return false;
  }

  // Where nothing may differ, another model is not compared in silence; where a margin allows for
  // change, a changed model is what the margin is for.
  void compare_models(const Expected& expected) {
    if (expected.trace == outcome_.trace) return;
    const std::string text =
        fmt::format("the model changed: {} (its trace is {}, expected {})",
                    describe_sizes(expected.model, outcome_.model), outcome_.trace,
                    expected.trace.empty() ? "none" : expected.trace);
    if (allows_drift()) {
      verdict_.notes.push_back(text);
    } else {
      find(FindingKind::ModelChanged, text,
           file_.places.line_of(expected.pointer + "/trace", line_));
    }
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
};

void judge_budget(const CheckFile& file, const Experiment& experiment,
                  const ExperimentOutcome& outcome, ExperimentVerdict& verdict) {
  if (outcome.fits) return;
  const std::size_t line = file.places.line_of(experiment.pointer + "/budget", verdict.line);
  const std::string what = outcome.short_by == Bytes{} ? std::string("fragmentation keeps it out")
                                                       : to_text(outcome.short_by) + " short";
  verdict.findings.push_back(
      {FindingKind::DoesNotFit,
       fmt::format("does not fit in {}{}: {}", to_text(outcome.room),
                   experiment.reserve == Margin{}
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

}  // namespace

std::size_t CheckReport::failures() const {
  return static_cast<std::size_t>(std::ranges::count_if(experiments, &ExperimentVerdict::failed));
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
  std::map<std::string_view, const Expected*> expected;
  if (file.baseline)
    for (const Expected& entry : file.baseline->experiments) expected.emplace(entry.id, &entry);
  const bool is_comparable = file.baseline && report.findings.empty();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Experiment& experiment = file.experiments[i];
    ExperimentVerdict& verdict = report.experiments.emplace_back();
    verdict.id = experiment.id;
    verdict.line = file.places.line_of(experiment.pointer);
    verdict.refusal = outcomes[i].refusal;
    Comparer comparer(file, experiment, outcomes[i], verdict);
    const auto entry = expected.find(experiment.id);
    if (is_comparable && entry != expected.end()) {
      comparer.compare(*entry->second);
    } else {
      comparer.report_metrics();
      if (is_comparable && !rules.allows_new)
        add_finding(verdict.findings, FindingKind::NewExperiment,
                    "the baseline does not know it (update the baseline, or pass --allow-new)",
                    verdict.line);
    }
    judge_budget(file, experiment, outcomes[i], verdict);
    if (entry != expected.end()) expected.erase(entry);
  }
  if (is_comparable)
    for (const Expected& entry : file.baseline->experiments)
      if (expected.contains(entry.id)) judge_gone(file, entry, report);
  return report;
}

}  // namespace tidemark
