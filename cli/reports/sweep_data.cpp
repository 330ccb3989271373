// A sweep for programs.
#include <fmt/format.h>

#include "cli/reports/comparison_fields.h"
#include "cli/reports/json_text.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_sweep.h"
#include "cli/text/csv.h"

namespace tidemark::cli {

std::string sweep_json(std::span<const Comparison> points) {
  Json json = {{"format", "tidemark-sweep-1"}, {"predicted", true}, {"points", Json::array()}};
  for (const Comparison& point : points)
    json["points"].push_back(Json::parse(comparison_json(point)));
  return document_text(json);
}

std::string sweep_csv(std::span<const Comparison> points) {
  std::vector<std::string> titles = {"batch", "sequence", "image", "device"};
  for (const RowField& field : row_fields()) titles.emplace_back(field.key);
  std::string text = csv_line(titles);
  const auto optional = [](const std::optional<std::int64_t>& value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (const Comparison& point : points)
    for (const Report& row : point.rows) {
      const StepOptions& step = point.scenario.step;
      std::vector<std::string> cells = {fmt::format("{}", step.batch), optional(step.sequence),
                                        optional(step.image), point.scenario.device.name};
      for (const RowField& field : row_fields()) cells.push_back(field_text(value_of(field, row)));
      text += csv_line(cells);
    }
  return text;
}

}  // namespace tidemark::cli
