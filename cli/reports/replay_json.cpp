// A replay as JSON, one or several, and its fields as CSV.
#include "cli/reports/json_text.h"
#include "cli/reports/print_replay.h"
#include "cli/text/csv.h"

namespace tidemark::cli {
namespace {

Json numbers_json(const profiler::ReplayNumbers& numbers) {
  const std::optional<RecoveryTime>& recovery = numbers.recovery;
  return {{"live_peak_bytes", numbers.live_peak.count},
          {"at_peak_bytes", to_json(numbers.at_peak)},
          {"planned_bytes", numbers.planned.count},
          {"step_ns", numbers.step.count()},
          {"overlap_ns", numbers.overlap.count()},
          {"recompute_ns", recovery ? Json(recovery->alone.count()) : Json()},
          {"hidden_recompute_ns", recovery ? Json(recovery->hidden.count()) : Json()},
          {"hidden_recompute_share", to_json(numbers.hidden_share())}};
}

Json report_json(const profiler::ReplayScenario& scenario, const profiler::ReplayReport& report) {
  const Trace& trace = *scenario.trace;
  Json json = {{"format", "tidemark-replay-1"},     {"model", trace.model},
               {"batch", trace.step.batch},         {"strategy", report.strategy},
               {"backend", report.backend},         {"backend_description", report.description},
               {"predicted_for", report.device},    {"seed", scenario.seed},
               {"steps_asked", report.steps_asked}, {"steps_timed", report.steps_timed},
               {"applies", report.applies},         {"reason", report.reason}};
  if (!report.applies) return json;
  const bool was_measured = report.steps_timed > 0;
  json["predicted"] = numbers_json(report.predicted);
  json["measured"] = was_measured ? numbers_json(report.measured) : Json();
  json["fastest_step_ns"] = report.fastest.count();
  json["slowest_step_ns"] = report.slowest.count();
  if (report.run_by_run) json["run_by_run_step_ns"] = report.run_by_run->count();
  if (!report.remark.empty()) json["remark"] = report.remark;
  json["loss"] = report.losses;
  json["gradient_reference"] = report.gradients ? Json(report.gradients->reference) : Json();
  json["gradient_max_rel_error"] =
      report.gradients ? Json(report.gradients->difference.largest) : Json();
  json["gradient_rel_error"] =
      report.gradients ? Json(report.gradients->difference.overall) : Json();
  json["gradient_bit_identical"] =
      report.gradients ? Json(report.gradients->difference.bit_identical) : Json();
  json["workspace_bytes"] = report.workspace.count;
  json["host_bytes"] = report.host_memory.count;
  json["resident_peak_bytes"] = to_json(report.resident);
  return json;
}

}  // namespace

std::string replay_json(const profiler::ReplayScenario& scenario,
                        const profiler::ReplayReport& report) {
  return document_text(report_json(scenario, report));
}

std::string replays_json(const std::vector<profiler::ReplayScenario>& scenarios,
                         const std::vector<profiler::ReplayReport>& reports) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < reports.size(); ++i)
    rows.push_back(report_json(scenarios[i], reports[i]));
  return document_text({{"format", "tidemark-compare-replay-1"}, {"rows", std::move(rows)}});
}
std::string replay_csv(const profiler::ReplayReport& report) {
  std::string text = csv_line({"number", "predicted", "measured"});
  if (!report.applies) return text;
  for (const ReplayField& field : replay_fields(report))
    text += csv_line({std::string(field.key), std::to_string(field.predicted),
                      field.measured ? std::to_string(*field.measured) : ""});
  return text;
}

}  // namespace tidemark::cli
