// A function for each kind of record.
#include "recorder/cupti_rows.h"

#include <cstring>

#include "profiler/cupti_interface.h"

namespace tidemark::recorder {
namespace {

namespace cupti = profiler::cupti;

/// Records are packed in memory of no C++ type: fields are copied out of their bytes.
template <typename T>
T get(const std::uint8_t* record, cupti::Field<T> field) {
  T value;
  std::memcpy(&value, record + field.offset, sizeof value);
  return value;
}

/// A record's time, shifted; 0, CUPTI's word for "not measured", stays.
struct Time {
  const std::uint8_t* record;
  std::int64_t offset;
  std::uint64_t operator()(cupti::U64 field) const {
    const std::uint64_t time = get(record, field);
    return time == 0 ? 0 : time + static_cast<std::uint64_t>(offset);
  }
};

void add_kernel(const std::uint8_t* r, Time time, RunWriter& into) {
  using namespace cupti::kernel;
  // The name belongs to CUPTI and lives as long as the process; it may be missing.
  const auto* const text = reinterpret_cast<const char*>(get(r, name));
  KernelRow row;
  row.begin = time(start), row.end = time(end);
  row.name = into.name(text == nullptr ? "(a kernel without a name)" : text);
  row.device = get(r, device), row.stream = get(r, stream);
  row.correlation = get(r, correlation);
  row.grid = {get(r, grid_x), get(r, grid_y), get(r, grid_z)};
  row.block = {get(r, block_x), get(r, block_y), get(r, block_z)};
  row.shared_memory = get(r, static_shared) + get(r, dynamic_shared);
  row.registers = get(r, registers);
  row.local_memory = get(r, local_memory);
  into.add(row);
}

void add_copy(const std::uint8_t* r, Time time, RunWriter& into) {
  using namespace cupti::memcpy_record;
  TransferRow row;
  row.begin = time(start), row.end = time(end), row.bytes = get(r, bytes);
  row.device = get(r, device), row.stream = get(r, stream);
  row.correlation = get(r, correlation);
  row.kind = get(r, copy_kind), row.source = get(r, source_kind);
  row.target = get(r, target_kind), row.is_async = get(r, flags) & 1;
  into.add(row);
}

void add_set(const std::uint8_t* r, Time time, RunWriter& into) {
  using namespace cupti::memset_record;
  TransferRow row;
  row.begin = time(start), row.end = time(end), row.bytes = get(r, bytes);
  row.device = get(r, device), row.stream = get(r, stream);
  row.correlation = get(r, correlation);
  row.kind = importers::memset_transfer;
  into.add(row);
}

void add_memory(const std::uint8_t* r, Time at, RunWriter& into) {
  using namespace cupti::memory;
  MemoryRow row;
  row.time = at(time), row.address = get(r, address), row.bytes = get(r, bytes);
  row.device = get(r, device_id), row.stream = get(r, stream);
  row.correlation = get(r, correlation);
  row.operation = static_cast<std::uint8_t>(get(r, operation));
  row.memory = static_cast<std::uint8_t>(get(r, memory_kind));
  row.is_async = get(r, is_async) != 0;
  into.add(row);
}

void add_pool(const std::uint8_t* r, Time at, RunWriter& into) {
  using namespace cupti::memory_pool;
  PoolRow row;
  row.time = at(time), row.address = get(r, address), row.size = get(r, size);
  row.used = get(r, used), row.release_threshold = get(r, release_threshold);
  row.device = get(r, device);
  row.operation = static_cast<std::uint8_t>(get(r, operation));
  row.type = static_cast<std::uint8_t>(get(r, type));
  into.add(row);
}

void add_launch(const std::uint8_t* r, Time time, RunWriter& into) {
  using namespace cupti::api;
  into.add(LaunchRow{time(start), time(end), get(r, thread), get(r, correlation)});
}

}  // namespace

void add_record(const std::uint8_t* record, std::int64_t offset, RunWriter& into) {
  const Time time{record, offset};
  switch (get(record, cupti::kind)) {
    case cupti::kind_concurrent_kernel:
      return add_kernel(record, time, into);
    case cupti::kind_memcpy:
      return add_copy(record, time, into);
    case cupti::kind_memset:
      return add_set(record, time, into);
    case cupti::kind_memory:
      return add_memory(record, time, into);
    case cupti::kind_memory_pool:
      return add_pool(record, time, into);
    case cupti::kind_runtime:
    case cupti::kind_driver:
      return add_launch(record, time, into);
  }
}

}  // namespace tidemark::recorder
