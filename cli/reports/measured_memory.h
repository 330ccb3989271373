// What PyTorch's allocator was seen to need, as a result that `tidemark check` takes as measured.
#pragma once

#include "cli/reports/json_text.h"
#include "importers/snapshot_timeline.h"

namespace tidemark::cli {

/// Under the names that results of replays have.
inline Json measured_memory(const importers::SnapshotReport& report) {
  return {{"allocated_peak_bytes", report.allocated_peak.count},
          {"reserved_peak_bytes", report.reserved_peak.count}};
}

}  // namespace tidemark::cli
