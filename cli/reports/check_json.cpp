// A check as JSON: the whole report, and bare numbers in two formats for dashboards.
#include <nlohmann/json.hpp>

#include "cli/reports/check_print.h"
#include "cli/reports/json_text.h"

namespace tidemark::cli {
namespace {

Json finding_json(const regression::Finding& finding) {
  return {{"rule", to_string(finding.kind)}, {"text", finding.text}, {"line", finding.line}};
}

Json findings_json(const std::vector<regression::Finding>& findings) {
  Json json = Json::array();
  for (const regression::Finding& finding : findings) json.push_back(finding_json(finding));
  return json;
}

Json metric_json(const regression::MetricVerdict& metric) {
  Json json = {{"expected", to_json(metric.expected)}, {"now", to_json(metric.now)}};
  json["unit"] = row_of(metric.metric).unit;
  json["tolerance"] = metric.expected ? Json(allowed(metric.tolerance, *metric.expected)) : Json();
  json["checked"] = metric.is_checked;
  json["outside"] = metric.is_outside;
  return json;
}

Json peak_group_json(const regression::PeakGroup& group) {
  return {{"tensors", group.tensors},
          {"bytes", group.bytes.count},
          {"decision", group.decision},
          {"reason", group.reason}};
}

Json change_json(const regression::PeakChange& change) {
  return {{"role", change.now.role},
          {"contents", change.now.contents},
          {"op", change.now.op},
          {"change_bytes", change.change().count},
          {"new", change.is_new},
          {"gone", change.is_gone},
          {"before_is_at_most", change.is_bound},
          {"before", peak_group_json(change.before)},
          {"now", peak_group_json(change.now)}};
}

Json peak_json(const regression::ExperimentVerdict& verdict) {
  Json changes = Json::array();
  for (const regression::PeakChange& change : verdict.changes)
    changes.push_back(change_json(change));
  return {{"before_at", verdict.peak_before},
          {"now_at", verdict.peak_now},
          {"changes", std::move(changes)},
          {"others_before_bytes", verdict.rest.before.bytes.count},
          {"others_now_bytes", verdict.rest.now.bytes.count}};
}

Json time_json(const regression::ExperimentVerdict& verdict) {
  const auto group = [](const diff::TimeGroup& one) {
    return Json{{"runs", one.runs}, {"ns", one.time.count()}};
  };
  Json changes = Json::array();
  for (const regression::TimeChange& change : verdict.time_changes)
    changes.push_back({{"task", change.now.task},
                       {"op", change.now.op},
                       {"stream", change.now.stream},
                       {"change_ns", change.change().count()},
                       {"new", change.is_new},
                       {"gone", change.is_gone},
                       {"before_is_at_most", change.is_bound},
                       {"before", group(change.before)},
                       {"now", group(change.now)}});
  return {{"changes", std::move(changes)},
          {"others_before_ns", verdict.time_rest.before.time.count()},
          {"others_now_ns", verdict.time_rest.now.time.count()}};
}

Json experiment_json(const regression::ExperimentVerdict& verdict) {
  Json json = {{"id", verdict.id},
               {"line", verdict.line},
               {"was", verdict.was.empty() ? Json() : Json(verdict.was)},
               {"failed", verdict.failed()},
               {"compared", verdict.is_compared},
               {"findings", findings_json(verdict.findings)},
               {"cause", verdict.cause},
               {"time_cause", verdict.time_cause},
               {"notes", verdict.notes},
               {"does_not_apply", verdict.refusal}};
  json["metrics"] = Json::object();
  for (const regression::MetricVerdict& metric : verdict.metrics)
    json["metrics"][std::string(row_of(metric.metric).name)] = metric_json(metric);
  json["peak"] = verdict.is_compared && !verdict.peak_now.empty() ? peak_json(verdict) : Json();
  json["time"] = verdict.time_cause.empty() ? Json() : time_json(verdict);
  return json;
}

}  // namespace

std::string check_json(const regression::CheckReport& report) {
  Json json = {{"format", "tidemark-check-report-1"},
               {"version", report.tidemark},
               {"expected_version", report.expected_tidemark},
               {"file", report.path},
               {"failed", report.failed()},
               {"failures", report.failures()},
               {"compared", report.compared()},
               {"findings", findings_json(report.findings)}};
  json["experiments"] = Json::array();
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    json["experiments"].push_back(experiment_json(verdict));
  return document_text(json);
}

std::string check_smaller_is_better(const regression::CheckReport& report) {
  Json json = Json::array();
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    for (const regression::MetricVerdict& metric : verdict.metrics) {
      if (!metric.now) continue;
      const regression::MetricRow& row = row_of(metric.metric);
      Json entry = {{"name", verdict.id + ": " + std::string(row.name)},
                    {"unit", row.unit},
                    {"value", *metric.now}};
      if (metric.expected) {
        entry["range"] = "± " + std::to_string(allowed(metric.tolerance, *metric.expected));
        entry["extra"] = "expected " + std::to_string(*metric.expected);
      }
      json.push_back(std::move(entry));
    }
  return document_text(json);
}

// Bencher knows "latency", in nanoseconds; measures of other names are created on arrival.
std::string check_bmf(const regression::CheckReport& report) {
  Json json = Json::object();
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    for (const regression::MetricVerdict& metric : verdict.metrics) {
      if (!metric.now) continue;
      const std::string measure = metric.metric == regression::Metric::Step
                                      ? "latency"
                                      : std::string(row_of(metric.metric).name);
      json[verdict.id][measure] = {{"value", *metric.now}};
    }
  return document_text(json);
}

}  // namespace tidemark::cli
