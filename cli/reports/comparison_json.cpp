// A comparison as JSON: inputs, one object per strategy from the row fields, and units per block.
#include <nlohmann/json.hpp>

#include "cli/reports/comparison_fields.h"
#include "cli/reports/json_text.h"
#include "cli/reports/print_comparison.h"

namespace tidemark::cli {
namespace {

Json block_units_json(const BlockUnits& units) {
  Json kinds = Json::object();
  for (const KindUnits& kind : units.kinds)
    kinds[std::string(to_string(kind.kind))] = {{"per_op", kind.per_op}, {"unique", kind.unique}};
  return {{"block", units.block},
          {"unit_bytes", units.unit.count},
          {"per_op", units.per_op},
          {"unique", units.unique},
          {"kinds", std::move(kinds)}};
}

}  // namespace

Json row_json(const Report& row) {
  Json json = Json::object();
  for (const RowField& field : row_fields())
    std::visit([&](const auto& value) { json[std::string(field.key)] = to_json(value); },
               value_of(field, row));
  json["at_peak_bytes"] = row.applies ? to_json(row.at_peak) : Json();
  json["block_units"] = row.applies ? block_units_json(row.units) : Json();
  return json;
}

std::string comparison_json(const Comparison& comparison) {
  Json json = inputs_json("tidemark-compare-1", comparison);
  json["rows"] = Json::array();
  for (const Report& row : comparison.rows) json["rows"].push_back(row_json(row));
  json["conclusion"] = to_text(comparison.conclusion);
  return document_text(json);
}

}  // namespace tidemark::cli
