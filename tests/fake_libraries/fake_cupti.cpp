// A CUPTI without a GPU: whoever pushes and pops a step gets the records of one kernel for it.
#include "tests/fake_libraries/fake_cupti.h"

#include <mutex>

using namespace tidemark::profiler::cupti;

namespace {

FakeBehaviour behaviour;
BufferRequested requested = nullptr;
BufferCompleted completed = nullptr;
RecordWriter records;
std::uint64_t pushed = 0;
std::uint32_t correlation = 0;
std::mutex mutex;  // of the records: a recorder has a thread of its own that flushes

// Whole records from there on, as many as a buffer takes.
std::size_t end_of_fitting(std::size_t begin, std::size_t size) {
  std::size_t end = begin;
  while (end < records.bytes.size()) {
    std::uint32_t next_kind = 0;
    std::memcpy(&next_kind, records.bytes.data() + end, sizeof next_kind);
    const std::size_t next = end + record_size(next_kind, behaviour.version);
    if (next - begin > size) break;
    end = next;
  }
  return end;
}

}  // namespace

extern "C" {

FakeBehaviour* fake_cupti_behaviour();
FakeBehaviour* fake_cupti_behaviour() { return &behaviour; }

void fake_cupti_add(const std::uint8_t* bytes, std::size_t size);
void fake_cupti_add(const std::uint8_t* bytes, std::size_t size) {
  const std::lock_guard lock(mutex);
  records.bytes.insert(records.bytes.end(), bytes, bytes + size);
}

void fake_cupti_take_over();
void fake_cupti_take_over() {
  const std::lock_guard lock(mutex);
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, count = 0;
  requested(&buffer, &size, &count);
  requested = nullptr, completed = nullptr;
}

Result cuptiGetVersion(std::uint32_t* version);
Result cuptiGetVersion(std::uint32_t* version) { return *version = behaviour.version, success; }

Result cuptiGetResultString(Result result, const char** text);
Result cuptiGetResultString(Result result, const char** text) {
  *text = result == too_many_subscribers ? "FAKE_MULTIPLE_SUBSCRIBERS" : "FAKE_ERROR";
  return success;
}

Result cuptiGetTimestamp(std::uint64_t* time);
Result cuptiGetTimestamp(std::uint64_t* time) { return *time = behaviour.clock, success; }

Result cuptiActivityRegisterCallbacks(BufferRequested request, BufferCompleted complete);
Result cuptiActivityRegisterCallbacks(BufferRequested request, BufferCompleted complete) {
  requested = request, completed = complete;
  return success;
}

Result cuptiActivityEnable(std::uint32_t);
Result cuptiActivityEnable(std::uint32_t) {
  if (behaviour.enable_result == success) ++behaviour.enabled_kinds;
  return behaviour.enable_result;
}

Result cuptiActivityDisable(std::uint32_t);
Result cuptiActivityDisable(std::uint32_t) { return --behaviour.enabled_kinds, success; }

Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t size, std::uint8_t** record);
Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t size, std::uint8_t** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    std::uint32_t last_kind = 0;
    std::memcpy(&last_kind, *record, sizeof last_kind);
    next = *record + record_size(last_kind, behaviour.version);
  }
  if (next >= buffer + size) return end_of_buffer;
  return *record = next, success;
}

Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped);
Result cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  *dropped = behaviour.dropped, behaviour.dropped = 0;
  return success;
}

Result cuptiActivityFlushAll(std::uint32_t);
Result cuptiActivityFlushAll(std::uint32_t flags) {
  const std::lock_guard lock(mutex);
  if (flags == 0) ++behaviour.complete_flushes;
  if (flags != 0 && behaviour.complete_flushes == 0) behaviour.was_forced_first = true;
  for (std::size_t begin = 0; begin < records.bytes.size() && requested != nullptr;) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, count = 0;
    requested(&buffer, &size, &count);
    const std::size_t end = end_of_fitting(begin, size);
    if (buffer == nullptr) {
      behaviour.dropped += 1;
      break;
    }
    std::memcpy(buffer, records.bytes.data() + begin, end - begin);
    completed(nullptr, 0, buffer, size, end - begin);
    begin = end;
  }
  records.bytes.clear();
  return success;
}

Result cuptiActivitySetAttribute(int attribute, std::size_t*, void*);
Result cuptiActivitySetAttribute(int attribute, std::size_t*, void*) {
  behaviour.is_pinned |= attribute == attribute_host_pinned;
  return success;
}

Result cuptiActivityGetAttribute(int, std::size_t*, void* value);
Result cuptiActivityGetAttribute(int, std::size_t*, void* value) {
  const std::size_t bytes = 3200000;
  std::memcpy(value, &bytes, sizeof bytes);
  return success;
}

Result cuptiActivityPushExternalCorrelationId(int, std::uint64_t id);
Result cuptiActivityPushExternalCorrelationId(int, std::uint64_t id) {
  return pushed = id, success;
}

Result cuptiActivityPopExternalCorrelationId(int, std::uint64_t* last);
Result cuptiActivityPopExternalCorrelationId(int, std::uint64_t* last) {
  *last = pushed;
  const std::uint64_t begin = behaviour.clock + 1000 * pushed;
  ++correlation;
  records.step(correlation, pushed).kernel(begin, begin + 400, correlation);
  return success;
}
}
