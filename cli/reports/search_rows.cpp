// One line per layout: how it is laid out, what it needs and takes, and how to run it.
#include "cli/reports/search_rows.h"

#include <fmt/format.h>

#include "cli/reports/launch_lines.h"

namespace tidemark::cli {

std::string sharding_text(const LayoutRequest& request, const MeshLayout& layout) {
  const StepOptions step = step_in(request, layout);
  return step.shard ? to_text(*step.shard) : "";
}

std::string schedule_text(const LayoutRequest& request, const MeshLayout& layout) {
  const auto schedule = schedule_in(request, layout);
  return schedule ? to_text(*schedule) : "";
}

Listing search_listing(const LayoutSearch& search, const LayoutCommand& command) {
  Listing listing{{{"mesh", "mesh"},
                   {"sequence_parallel", "sp"},
                   {"batch", "batch", Align::Right},
                   {"accumulate", "micro-batches", Align::Right},
                   {"schedule", "schedule"},
                   {"shard", "shard"},
                   {"strategy", "strategy"},
                   {"is_on_front", "front"},
                   {"rank", "rank"},
                   {"allocated_bytes", "allocated bytes", Align::Right},
                   {"allocated_at_rest_bytes", "at rest", Align::Right},
                   {"reserved_bytes", "reserved bytes", Align::Right},
                   {"capacity_bytes", "capacity", Align::Right},
                   {"step_ns", "step ns", Align::Right},
                   {"exposed_ns", "exposed ns", Align::Right},
                   {"bubble_ns", "bubble ns", Align::Right},
                   {"samples_per_second", "samples/s", Align::Right},
                   {"throughput", fmt::format("{}/s", search.throughput_unit), Align::Right},
                   {"mfu", "MFU", Align::Right},
                   {"command", "command"}},
                  {}};
  for (const LaunchLine& line : launch_lines(search.request, MeshLayout()))
    listing.columns.push_back({std::string(line.program), std::string(line.program)});
  for (const FoundLayout& found : search.found) {
    const MeshLayout& layout = found.layout;
    const LayoutNumbers& numbers = found.numbers;
    std::vector<ListCell> row = {
        {to_text(layout.mesh)},
        {layout.sequence_parallel},
        {layout.batch},
        {layout.micro_batches},
        {schedule_text(search.request, layout)},
        {sharding_text(search.request, layout)},
        {search.request.scenario.strategies[layout.strategy].text},
        {found.is_on_front},
        {layout.mesh[Axis::Pipeline] > 1 ? to_text(RankClass{numbers.stage}) : std::string()},
        {numbers.allocated.count},
        {numbers.at_rest.count},
        {numbers.reserved.count},
        {numbers.capacity.count},
        {numbers.step.count()},
        {numbers.exposed.count()},
        {numbers.bubble.count()},
        {numbers.samples_per_second},
        {numbers.throughput},
        {numbers.mfu},
        {command(layout)}};
    for (LaunchLine& line : launch_lines(search.request, layout))
      row.push_back({line.line.empty() ? FieldValue() : FieldValue(std::move(line.line))});
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

}  // namespace tidemark::cli
