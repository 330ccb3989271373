// Bytes as an export of Nsight Systems: the reader returns a timeline whose runs follow one another
// and whose blocks come before they go, or throws InputError of one line.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "importers/nsys.h"
#include "tests/fuzz/refusals.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  importers::RecordedTimeline made;
  try {
    importers::SqliteFile file(bytes, "fuzz", "export it again");
    made = importers::read_nsys(file, "fuzz");
  } catch (const InputError& error) {
    require_one_line(error.what());
    return 0;
  }
  std::vector<Nanoseconds> busy(made.schedule.streams);
  for (const TimedRun& run : made.timeline.runs) {
    require(run.begin >= busy.at(index(run.stream)) && run.end >= run.begin);
    require(run.end <= made.timeline.duration);
    busy[index(run.stream)] = run.end;
  }
  std::vector<bool> is_present(made.schedule.buffers.size());
  for (const MemoryEvent& event : made.timeline.memory) {
    require(is_present.at(index(event.buffer)) != event.appears);
    is_present[index(event.buffer)] = event.appears;
  }
  const Peak top = peak(made.schedule, made.timeline);
  require(total(top.by_category) == top.bytes);
  require(made.callers.size() == made.trace->tensors.size());
  return 0;
}
