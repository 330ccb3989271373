// Bytes as a profile of torch.profiler: the reader returns a timeline whose runs follow one another
// and whose blocks come before they go, or throws InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "importers/kineto.h"
#include "tests/fuzz/refusals.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  importers::RecordedTimeline made;
  try {
    const JsonDocument document(json, "fuzz");
    made = importers::read_kineto(document.root(), "fuzz");
  } catch (const InputError&) {
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
