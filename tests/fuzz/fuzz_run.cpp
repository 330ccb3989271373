// Bytes as a recorded run: the reader returns rows of which a timeline can be made whose runs
// follow one another and whose blocks come before they go, or throws InputError.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "importers/run_timeline.h"
#include "importers/timeline_window.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

void check(const importers::RecordedTimeline& made) {
  const auto& [device, trace, schedule, timeline, callers] = made;
  std::vector<Nanoseconds> busy(schedule.streams);
  for (const TimedRun& run : timeline.runs) {
    require(run.begin >= busy.at(index(run.stream)) && run.end >= run.begin);
    require(run.end <= timeline.duration);
    busy[index(run.stream)] = run.end;
  }
  require(timeline.idle.count() >= 0 && timeline.overlap.count() >= 0);
  std::vector<bool> is_present(schedule.buffers.size());
  Nanoseconds last{};
  for (const MemoryEvent& event : timeline.memory) {
    require(event.time >= last && event.time <= timeline.duration);
    require(is_present.at(index(event.buffer)) != event.appears);
    is_present[index(event.buffer)] = event.appears;
    last = event.time;
  }
  const Peak top = peak(schedule, timeline);
  require(total(top.by_category) == top.bytes);
  require(callers.size() == trace->tensors.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  importers::RunTimeline made;
  try {
    made = importers::timeline_of(importers::read_run_file(file, "fuzz"), "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  check(made.recorded);
  const Nanoseconds whole = made.recorded.timeline.duration;
  check(importers::window_of(made.recorded, whole / 4, whole / 2));
  for (const importers::RunWork& work : made.work) require(work.count > 0);
  return 0;
}
