// A search for programs: what was asked, what was cut by which rule, and the rows.
#include "cli/reports/search_json.h"

#include "cli/reports/json_text.h"
#include "cli/reports/launch_lines.h"
#include "cli/reports/search_rows.h"
#include "simulator/parallel/cluster.h"

namespace tidemark::cli {
namespace {

Json value_json(const FieldValue& value) {
  return std::visit([](const auto& held) { return to_json(held); }, value);
}

Json counts_json(const LayoutSearch& search) {
  Json counts;
  for (const LayoutRuleRow& rule : layout_rules)
    counts[std::string(rule.name)] = search.cut[static_cast<std::size_t>(rule.value)];
  return counts;
}

Json nearest_json(const LayoutSearch& search, const LayoutCommand& command) {
  if (!search.nearest) return nullptr;
  const LayoutNumbers& numbers = search.nearest->numbers;
  const bool is_peak_known = !search.nearest_peak.empty();
  return {{"layout", search.nearest->key},
          {"allocated_bytes", numbers.allocated.count},
          {"short_by_bytes", numbers.short_by.count},
          {"capacity_bytes", numbers.capacity.count},
          {"peak_at", is_peak_known ? Json(search.nearest_peak) : Json()},
          {"at_peak", is_peak_known ? to_json(search.nearest_bytes) : Json()},
          {"command", command(search.nearest->layout)}};
}

}  // namespace

std::string search_json(const LayoutSearch& search, const LayoutCommand& command) {
  const LayoutRequest& request = search.request;
  const Interconnect* const joined = interconnect_of(request.scenario.device);
  Json rows = Json::array();
  const Listing listing = search_listing(search, command);
  for (const auto& cells : listing.rows) {
    Json row;
    for (std::size_t c = 0; c < cells.size(); ++c)
      row[listing.columns[c].key] = value_json(cells[c].value);
    rows.push_back(std::move(row));
  }
  return document_text({{"format", "tidemark-search"},
                        {"version", TIDEMARK_VERSION},
                        {"model", request.scenario.model.name},
                        {"device", request.scenario.device.name},
                        {"cluster", joined ? Json(joined->cluster) : Json()},
                        {"gpus", request.gpus},
                        {"global_batch", request.global_batch},
                        {"layouts", search.all},
                        {"left_out", counts_json(search)},
                        {"undivided", search.undivided},
                        {"is_stopped", search.is_stopped},
                        {"throughput_unit", search.throughput_unit},
                        {"nearest", nearest_json(search, command)},
                        {"rows", std::move(rows)}});
}

}  // namespace tidemark::cli
