// Bytes as a memory snapshot: the reader returns one or throws InputError, and nothing in the file
// is run. What it returns becomes a timeline whose sums agree, or is refused as well.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "importers/snapshot_timeline.h"
#include "tests/fuzz/refusals.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  using namespace tidemark::importers;
  PickleInput input({reinterpret_cast<const char*>(data), size}, "fuzz");
  try {
    const MemorySnapshot snapshot = read_memory_snapshot(input);
    const SnapshotTimeline made = timeline_of(snapshot, "fuzz");
    require(made.offsets.size() == made.schedule.buffers.size());
    const SnapshotReport report = report_of(snapshot, made);
    require(report.at_peak.active == report.active_peak);
    Bytes alive;
    for (const StackGroup& group : report.alive) {
      require(!site_of(snapshot, group.stack).empty());
      alive += group.size;
    }
    require(alive == report.active_peak);
  } catch (const InputError&) {
  }
  return 0;
}
