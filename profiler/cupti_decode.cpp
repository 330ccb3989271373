// Buffers of CUPTI's records become plain structs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "profiler/cupti.h"

namespace tidemark::profiler {
namespace {

/// Records are packed in memory of no C++ type: fields are copied out of their bytes.
template <typename T>
T get(const std::uint8_t* record, cupti::Field<T> field) {
  T value;
  std::memcpy(&value, record + field.offset, sizeof value);
  return value;
}

Nanoseconds time(const std::uint8_t* record, cupti::U64 field) {
  return Nanoseconds(static_cast<std::int64_t>(get(record, field)));
}
Bytes bytes(std::uint64_t count) { return {static_cast<std::int64_t>(count)}; }

class Decoder {
 public:
  explicit Decoder(CuptiRecording& into) : into_(into) {}

  void add(const std::uint8_t* r) {
    switch (get(r, cupti::kind)) {
      case cupti::kind_concurrent_kernel:
        return add_kernel(r);
      case cupti::kind_memcpy:
        return add_copy(r);
      case cupti::kind_memset:
        return add_set(r);
      case cupti::kind_memory:
        return add_memory(r);
      case cupti::kind_synchronization:
        return add_wait(r);
      case cupti::kind_external_correlation:
        return add_step(r);
      case cupti::kind_overhead:
        return add_overhead(r);
      case cupti::kind_runtime:  // only asked for because the steps come with them
      case cupti::kind_driver:
        return;
      default:
        ++into_.unknown;
    }
  }

 private:
  void add_kernel(const std::uint8_t* r) {
    using namespace cupti::kernel;
    GpuKernel kernel;
    // The name belongs to CUPTI and lives as long as the process; it may be missing.
    const auto text = reinterpret_cast<const char*>(get(r, name));
    if (text != nullptr) kernel.name = text;
    kernel.begin = time(r, start), kernel.end = time(r, end);
    kernel.stream = get(r, stream), kernel.correlation = get(r, correlation);
    kernel.blocks = std::uint64_t{get(r, grid_x)} * get(r, grid_y) * get(r, grid_z);
    kernel.threads = get(r, block_x) * get(r, block_y) * get(r, block_z);
    kernel.shared_memory = bytes(std::uint64_t{get(r, static_shared)} + get(r, dynamic_shared));
    kernel.registers = get(r, registers);
    kernel.local_memory = bytes(get(r, local_memory));
    if (has_times(kernel.begin, kernel.end)) into_.kernels.push_back(std::move(kernel));
  }

  void add_copy(const std::uint8_t* r) {
    using namespace cupti::memcpy_record;
    using Kind = GpuTransfer::Kind;
    GpuTransfer copy;
    const std::uint8_t direction = get(r, copy_kind);
    copy.kind = direction == to_device       ? Kind::ToDevice
                : direction == to_host       ? Kind::ToHost
                : direction == within_device ? Kind::WithinDevice
                                             : Kind::Other;
    copy.is_pinned = get(r, copy.kind == Kind::ToHost ? target_kind : source_kind) == pinned;
    copy.size = bytes(get(r, cupti::memcpy_record::bytes));
    copy.begin = time(r, start), copy.end = time(r, end);
    copy.stream = get(r, stream), copy.correlation = get(r, correlation);
    if (has_times(copy.begin, copy.end)) into_.transfers.push_back(copy);
  }

  void add_set(const std::uint8_t* r) {
    using namespace cupti::memset_record;
    GpuTransfer set;
    set.kind = GpuTransfer::Kind::Set;
    set.size = profiler::bytes(get(r, cupti::memset_record::bytes));
    set.begin = time(r, start), set.end = time(r, end);
    set.stream = get(r, stream), set.correlation = get(r, correlation);
    if (has_times(set.begin, set.end)) into_.transfers.push_back(set);
  }

  void add_memory(const std::uint8_t* r) {
    using namespace cupti::memory;
    into_.allocations.push_back({get(r, operation) == release, get(r, memory_kind) == device,
                                 get(r, address), profiler::bytes(get(r, cupti::memory::bytes)),
                                 profiler::time(r, cupti::memory::time)});
  }

  void add_wait(const std::uint8_t* r) {
    using namespace cupti::synchronization;
    into_.waits.push_back({get(r, type) != stream_waits_for_event, time(r, start), time(r, end)});
  }

  void add_step(const std::uint8_t* r) {
    using namespace cupti::external_correlation;
    if (get(r, external_kind) != cupti::correlation_custom0) return;  // another tool's
    into_.steps.emplace_back(get(r, correlation), get(r, external_id));
  }

  void add_overhead(const std::uint8_t* r) {
    using namespace cupti::overhead;
    into_.overheads.push_back({get(r, overhead_kind), time(r, start), time(r, end)});
    std::free(reinterpret_cast<void*>(get(r, data)));  // CUPTI allocated it for its reader
  }

  /// Zero at both ends is CUPTI's word for "not measured".
  bool has_times(Nanoseconds begin, Nanoseconds end) {
    const bool is_timed = end > Nanoseconds{} && begin <= end;
    if (!is_timed) ++into_.without_times;
    return is_timed;
  }

  CuptiRecording& into_;
};

/// From the first to the last thing that a step did on the GPU.
struct Seen {
  Nanoseconds begin = Nanoseconds::max(), end{};
  void extend(Nanoseconds from, Nanoseconds to) {
    begin = std::min(begin, from), end = std::max(end, to);
  }
};

std::unordered_map<std::uint64_t, Seen> seen_by_step(const CuptiRecording& recording) {
  const std::unordered_map<CorrelationId, std::uint64_t> step_of(recording.steps.begin(),
                                                                 recording.steps.end());
  std::unordered_map<std::uint64_t, Seen> seen;
  const auto add = [&](const auto& work) {
    const auto step = step_of.find(work.correlation);
    if (step != step_of.end()) seen[step->second].extend(work.begin, work.end);
  };
  for (const GpuKernel& kernel : recording.kernels) add(kernel);
  for (const GpuTransfer& transfer : recording.transfers) add(transfer);
  return seen;
}

}  // namespace

void decode(const CuptiLibrary& library, std::span<std::uint8_t> buffer, CuptiRecording& into) {
  Decoder decoder(into);
  std::uint8_t* record = nullptr;
  // Records of later versions are longer: only CUPTI knows where the next one begins.
  while (!buffer.empty()) {
    const cupti::Result result =
        library.functions().ActivityGetNextRecord(buffer.data(), buffer.size(), &record);
    if (result == cupti::end_of_buffer) return;
    library.check(result, "reading CUPTI's records");
    decoder.add(record);
  }
}

std::vector<Ran> with_seen_times(std::vector<Ran> ran, const CuptiRecording& recording,
                                 Nanoseconds origin, std::size_t* unseen) {
  const auto seen = seen_by_step(recording);
  std::size_t count = 0;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const auto found = seen.find(i);  // runs are pushed by their place, see observed_backend.cpp
    if (found == seen.end()) {
      ++count;
      continue;
    }
    ran[i].begin = found->second.begin - origin;
    ran[i].end = found->second.end - origin;
  }
  if (unseen != nullptr) *unseen = count;
  return ran;
}

}  // namespace tidemark::profiler
