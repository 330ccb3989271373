// A snapshot's report as JSON, with exact bytes, and its peak as collapsed stacks.
#include <fmt/format.h>

#include "cli/reports/json_text.h"
#include "cli/reports/measured_memory.h"
#include "cli/reports/print_snapshot.h"
#include "importers/stack_text.h"

namespace tidemark::cli {
namespace {

Json frames_json(const importers::MemorySnapshot& snapshot, importers::StackId stack) {
  Json frames = Json::array();
  for (const std::uint32_t number : snapshot.stack(stack)) {
    const importers::Frame& frame = snapshot.frames[number];
    frames.push_back({{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
  }
  return frames;
}

Json pool_json(const importers::PoolState& pool) {
  return {{"reserved_bytes", pool.reserved.count},
          {"active_bytes", pool.active.count},
          {"free_bytes", pool.free().count},
          {"largest_gap_bytes", pool.largest_gap.count},
          {"unused_segment_bytes", pool.unused.count},
          {"segments", pool.segments},
          {"blocks", pool.blocks},
          {"gaps", pool.gaps}};
}

}  // namespace

std::string snapshot_json(const SnapshotFacts& facts) {
  const importers::SnapshotReport& report = facts.report;
  Json json = {{"format", "tidemark-snapshot-1"},
               {"tidemark", TIDEMARK_VERSION},
               {"file", facts.file},
               {"device", report.device},
               {"devices_with_events", report.devices_with_events},
               {"allocator_settings", facts.snapshot.settings_text},
               {"events", report.events},
               {"unknown_events", report.unknown_events},
               {"contradictions", report.contradictions},
               {"blocks_before", report.blocks_before},
               {"duration_ns", report.duration.count()},
               {"active_peak_bytes", report.active_peak.count},
               {"allocated_peak_bytes", report.allocated_peak.count},
               {"reserved_peak_bytes", report.reserved_peak.count},
               {"requested_at_peak_bytes", report.requested_at_peak.count},
               {"peak_time_ns", report.peak_time.count()},
               {"at_peak", pool_json(report.at_peak)},
               {"at_end", pool_json(report.at_end)},
               {"measured", measured_memory(report)}};
  json["out_of_memory"] = Json::array();
  for (const importers::OutOfMemory& failure : report.failures)
    json["out_of_memory"].push_back({{"time_ns", failure.time.count()},
                                     {"requested_bytes", failure.requested.count},
                                     {"device_free_bytes", failure.device_free.count},
                                     {"pool", pool_json(failure.pool)},
                                     {"frames", frames_json(facts.snapshot, failure.stack)}});
  json["alive"] = Json::array();
  for (const importers::StackGroup& group : report.alive)
    json["alive"].push_back({{"site", site_of(facts.snapshot, group.stack)},
                             {"bytes", group.size.count},
                             {"blocks", group.blocks},
                             {"frames", frames_json(facts.snapshot, group.stack)}});
  return document_text(json);
}

std::string snapshot_stacks(const SnapshotFacts& facts) {
  std::string text;
  for (const importers::StackGroup& group : facts.report.alive) {
    const auto frames = facts.snapshot.stack(group.stack);
    std::string line;
    for (std::size_t i = frames.size(); i-- > 0;) {
      if (!line.empty()) line += ';';
      line += importers::frame_text(facts.snapshot.frames[frames[i]]);
    }
    if (line.empty()) line = site_of(facts.snapshot, group.stack);
    text += fmt::format("{} {}\n", line, group.size.count);
  }
  return text;
}

}  // namespace tidemark::cli
