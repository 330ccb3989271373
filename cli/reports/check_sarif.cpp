// A check as SARIF 2.1.0: the rules, and a result for each finding at its line of the check file.
#include <fmt/format.h>

#include "analysis/check/cause.h"
#include "analysis/check/fingerprint.h"
#include "cli/reports/check_print.h"
#include "cli/reports/json_text.h"

namespace tidemark::cli {
namespace {

constexpr const char* schema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

// A path as a URI reference: everything that is not unreserved (RFC 3986) in percent.
std::string uri(std::string_view path) {
  std::string text = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

Json rules_json() {
  Json rules = Json::array();
  for (const regression::FindingRow& row : regression::finding_rows)
    rules.push_back({{"id", row.name},
                     {"shortDescription", {{"text", row.help}}},
                     {"defaultConfiguration", {{"level", "error"}}}});
  return rules;
}

Json location_json(const regression::CheckReport& report, const regression::Finding& finding) {
  return {{"physicalLocation",
           {{"artifactLocation", {{"uri", uri(path_in_repository(report))}}},
            {"region", {{"startLine", finding.line}}}}}};
}

// The fingerprint keeps a finding the same one when the lines around it move.
Json result_json(const regression::CheckReport& report, const regression::Finding& finding,
                 const std::string& id, const std::string& text) {
  Json result = {{"ruleId", to_string(finding.kind)},
                 {"ruleIndex", static_cast<int>(finding.kind)},
                 {"level", "error"},
                 {"message", {{"text", text}}}};
  result["locations"] = Json::array({location_json(report, finding)});
  const std::string metric = finding.text.substr(0, finding.text.find(' '));
  result["partialFingerprints"] = {
      {"tidemark/v1",
       regression::fingerprint(fmt::format("{}\n{}\n{}", id, to_string(finding.kind), metric))}};
  return result;
}

}  // namespace

std::string check_sarif(const regression::CheckReport& report) {
  Json results = Json::array();
  for (const regression::Finding& finding : report.findings)
    results.push_back(result_json(report, finding, "", finding.text));
  for (const regression::ExperimentVerdict& verdict : report.experiments)
    for (const regression::Finding& finding : verdict.findings) {
      const std::string& why = cause_of(verdict, finding);
      const bool is_explained = finding.kind == regression::FindingKind::Grew && !why.empty();
      const std::string cause = is_explained ? "; " + why : "";
      results.push_back(
          result_json(report, finding, verdict.id, verdict.id + ": " + finding.text + cause));
    }
  const Json driver = {{"name", "tidemark"}, {"version", report.tidemark}, {"rules", rules_json()}};
  Json run = {{"tool", {{"driver", driver}}}};
  run["columnKind"] = "utf16CodeUnits";
  run["results"] = std::move(results);
  Json json = {{"$schema", schema}, {"version", "2.1.0"}};
  json["runs"] = Json::array({std::move(run)});
  return document_text(json);
}

}  // namespace tidemark::cli
