// The objects that all JSON reports begin with: model, options, device, allocator settings.
#include "cli/reports/json_text.h"

#include "cli/reports/print_comparison.h"

namespace tidemark::cli {
namespace {

Json model_json(const Comparison& comparison) {
  const Model& model = comparison.scenario.model;
  return {{"name", model.name},
          {"family", model.family},
          {"title", model.title},
          {"source", model.source},
          {"parameters", comparison.parameters},
          {"trainable_parameters", comparison.trainable},
          {"tokens", comparison.tokens}};
}

Json options_json(const Comparison& comparison) {
  const StepOptions step = resolved_step(comparison);
  Json json = Json::object();
  for (const StepField& field : step_fields())
    json[std::string(field.key)] = to_json(field.value(step));
  return json;
}

Json device_json(const Comparison& comparison) {
  const Device& device = comparison.scenario.device;
  return {{"name", device.name},
          {"title", device.title},
          {"capacity_bytes", device.capacity.count},
          {"context_bytes", to_json(device.context)},
          {"budget_bytes", to_json(comparison.scenario.budget)},
          {"available_bytes", comparison.budget.capacity.count}};
}

Json allocator_json(const allocator::AllocatorSettings& settings) {
  return {{"max_split_size_bytes", to_json(settings.max_split_size)},
          {"max_non_split_rounding_bytes", settings.max_non_split_rounding.count},
          {"roundup_divisions", settings.roundup_divisions},
          {"expandable_segments", settings.expandable_segments},
          {"garbage_collection_threshold", settings.garbage_collection_threshold}};
}

}  // namespace

Json to_json(const BytesByCategory& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < category_count; ++i)
    json[std::string(categories[i].name)] = bytes[i].count;
  return json;
}

Json inputs_json(std::string_view format, const Comparison& comparison) {
  return {{"format", format},
          {"version", TIDEMARK_VERSION},
          {"predicted", true},
          {"model", model_json(comparison)},
          {"options", options_json(comparison)},
          {"device", device_json(comparison)},
          {"allocator", allocator_json(comparison.budget.allocator)},
          {"notes", comparison.notes}};
}

std::string document_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidemark::cli
