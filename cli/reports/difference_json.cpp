// A difference as JSON: both peaks, and each cause with its words, bytes and tensors.
#include "cli/reports/json_text.h"
#include "cli/reports/print_difference.h"

namespace tidemark::cli {
namespace {

Json cause_json(const beside::Difference& difference, const beside::Cause& cause) {
  Json tensors = Json::array();
  for (const beside::CauseTensor& tensor : cause.tensors)
    tensors.push_back({{"tensor", tensor.tensor},
                       {"line", tensor.line},
                       {"allocated_by", tensor.allocated_by},
                       {"blocks", tensor.blocks},
                       {"bytes", tensor.size.count}});
  return {{"kind", beside::cause_kinds[static_cast<std::size_t>(cause.kind)].name},
          {"text", beside::words_of(difference, cause)},
          {"bytes", cause.bytes.count},
          {"blocks", cause.blocks},
          {"tensors", std::move(tensors)}};
}

}  // namespace

std::string difference_json(const BesideFacts& facts) {
  const beside::Difference& difference = facts.difference;
  Json json = inputs_json("tidemark-difference-1", facts.explanation.comparison);
  json.erase("predicted");  // not all of it: keys say which is which
  json["strategy"] = facts.explanation.report().strategy;
  json["recorded"] = {{"file", facts.file},
                      {"title", facts.recorded},
                      {"source", sources[static_cast<std::size_t>(facts.source)].name}};
  json["predicted_peak_bytes"] = difference.predicted.count;
  json["recorded_peak_bytes"] = difference.recorded.count;
  json["difference_bytes"] = (difference.recorded - difference.predicted).count;
  json["matched"] = {{"blocks", difference.matched_blocks},
                     {"of_blocks", difference.recorded_blocks},
                     {"bytes", difference.matched.count},
                     {"of_bytes", difference.compared.count}};
  json["scale"] = difference.scale ? Json(difference.scale->factor) : Json();
  json["causes"] = Json::array();
  for (const beside::Cause& cause : difference.causes)
    json["causes"].push_back(cause_json(difference, cause));
  return document_text(json);
}

}  // namespace tidemark::cli
