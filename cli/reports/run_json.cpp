// A recorded run as JSON: every kernel and range by name, with exact times and bytes.
#include "cli/reports/json_text.h"
#include "cli/reports/measured_memory.h"
#include "cli/reports/print_run.h"

namespace tidemark::cli {

std::string run_json(const RunFacts& facts) {
  const importers::RecordedTimeline& recorded = facts.made.recorded;
  const Timeline& timeline = recorded.timeline;
  Json json = {{"format", "tidemark-run-1"},
               {"tidemark", TIDEMARK_VERSION},
               {"file", facts.file},
               {"command", facts.run.command},
               {"pid", facts.run.pid},
               {"cupti", facts.run.cupti_version},
               {"device", recorded.device},
               {"duration_ns", timeline.duration.count()},
               {"idle_ns", timeline.idle.count()},
               {"overlap_ns", timeline.overlap.count()},
               {"kernels", facts.run.kernels.size()},
               {"transfers", facts.run.transfers.size()},
               {"peak_bytes", peak(recorded.schedule, timeline).bytes.count},
               {"outside_bytes", facts.made.outside.count},
               {"notes", facts.made.lacks}};
  if (const auto& memory = facts.made.memory)
    json["measured"] = measured_memory(importers::report_of(memory->snapshot, memory->made));
  json["work"] = Json::array();
  for (const importers::RunWork& row : facts.made.work)
    json["work"].push_back({{"name", row.name},
                            {"count", row.count},
                            {"time_ns", row.time.count()},
                            {"bytes", row.moved.count}});
  json["ranges"] = Json::array();
  for (const importers::RunRange& range : facts.made.ranges)
    json["ranges"].push_back({{"name", range.name},
                              {"count", range.count},
                              {"host_ns", range.host.count()},
                              {"gpu_ns", range.gpu.count()}});
  json["marks_ns"] = Json::array();
  for (const Nanoseconds mark : facts.made.marks) json["marks_ns"].push_back(mark.count());
  return document_text(json);
}

}  // namespace tidemark::cli
