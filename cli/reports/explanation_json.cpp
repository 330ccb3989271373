// An explanation as JSON: the peak, who is alive at it, decisions in groups, the memory curve.
#include "cli/reports/comparison_fields.h"
#include "cli/reports/json_text.h"
#include "cli/reports/print_explanation.h"

namespace tidemark::cli {
namespace {

Json alive_json(const AliveBuffer& buffer) {
  return {{"tensor", buffer.tensor},
          {"role", roles[static_cast<std::size_t>(buffer.role)].name},
          {"category", to_string(buffer.category)},
          {"bytes", buffer.size.count},
          {"block", buffer.block},
          {"decision", buffer.decision},
          {"reason", buffer.reason},
          {"line", buffer.line},
          {"shared", buffer.shared}};
}

Json decision_json(const DecisionGroup& group) {
  return {{"action", to_string(group.action)},
          {"reason", group.reason},
          {"tensors", group.tensors},
          {"bytes", group.bytes.count}};
}

Json peak_json(const Explanation& explanation) {
  const Report& row = explanation.report();
  return {{"bytes", row.live_peak.count},
          {"at", row.peak_at},
          {"time_ns", explanation.peak_time.count()},
          {"phase", phases[static_cast<std::size_t>(explanation.peak_phase)].name},
          {"by_category", to_json(row.at_peak)}};
}

Json curve_json(const Explanation& explanation) {
  constexpr std::size_t columns = 100;
  Json bytes = Json::array();
  for (const Bytes highest :
       live_curve(explanation.evaluation.schedule, explanation.evaluation.timeline, columns))
    bytes.push_back(highest.count);
  return {{"duration_ns", explanation.evaluation.timeline.duration.count()},
          {"backward_begin_ns", explanation.backward_begin.count()},
          {"optimizer_begin_ns", explanation.optimizer_begin.count()},
          {"highest_bytes", std::move(bytes)}};
}

}  // namespace

std::string explanation_json(const Explanation& explanation) {
  Json json = inputs_json("tidemark-explain-1", explanation.comparison);
  json["report"] = row_json(explanation.report());
  if (!explanation.report().applies) return document_text(json);
  json["peak"] = peak_json(explanation);
  json["live"] = curve_json(explanation);
  json["alive"] = Json::array();
  for (const AliveBuffer& buffer : explanation.alive) json["alive"].push_back(alive_json(buffer));
  json["decisions"] = Json::array();
  for (const DecisionGroup& group : explanation.decisions)
    json["decisions"].push_back(decision_json(group));
  return document_text(json);
}

}  // namespace tidemark::cli
