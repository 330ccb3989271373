// Records as CUPTI packs them, made by hand; and what the fake CUPTI lets tests decide.
#pragma once

#include <cstring>
#include <vector>

#include "profiler/cupti_interface.h"

namespace tidemark::profiler::cupti {

inline constexpr std::uint32_t cupti_13_0_1 = 130001, cupti_12_4 = 22;

/// Sizes of the records of CUPTI 13.0.1, which the real library was seen to step by, and of 12.4.
inline std::size_t record_size(std::uint32_t record_kind, std::uint32_t version = cupti_13_0_1) {
  const bool is_13 = version == cupti_13_0_1;
  switch (record_kind) {
    case kind_concurrent_kernel:
      return is_13 ? 216 : 208;
    case kind_memcpy:
      return is_13 ? 96 : 88;
    case kind_memset:
      return 88;
    case kind_memory:
      return is_13 ? 128 : 120;
    case kind_memory_pool:
      return is_13 ? 80 : 72;
    case kind_synchronization:
    case kind_overhead:
      return 56;
    case kind_external_correlation:
      return 24;
    default:  // runtime and driver API
      return 40;
  }
}

/// A buffer that grows record by record.
class RecordWriter {
 public:
  explicit RecordWriter(std::uint32_t version = cupti_13_0_1) : version_(version) {}
  RecordWriter& begin(std::uint32_t record_kind) {
    start_ = bytes.size();
    bytes.resize(start_ + record_size(record_kind, version_));
    return set(kind, record_kind);
  }
  template <typename T>
  RecordWriter& set(Field<T> field, typename Field<T>::type value) {
    std::memcpy(bytes.data() + start_ + field.offset, &value, sizeof value);
    return *this;
  }
  RecordWriter& kernel(std::uint64_t begin_time, std::uint64_t end_time, std::uint32_t id) {
    return begin(kind_concurrent_kernel)
        .set(kernel::start, begin_time)
        .set(kernel::end, end_time)
        .set(kernel::correlation, id);
  }
  RecordWriter& step(std::uint32_t id, std::uint64_t step_number) {
    return begin(kind_external_correlation)
        .set(external_correlation::external_kind, std::uint32_t{correlation_custom0})
        .set(external_correlation::external_id, step_number)
        .set(external_correlation::correlation, id);
  }

  std::vector<std::uint8_t> bytes;

 private:
  std::size_t start_ = 0;
  std::uint32_t version_;
};

/// What the fake does; exported by it as fake_cupti_behaviour().
struct FakeBehaviour {
  std::uint32_t version = cupti_13_0_1;
  Result enable_result = success;  ///< of ActivityEnable
  std::size_t dropped = 0;         ///< told once
  /// Each pop() makes a kernel of the pushed step n: from clock + 1000 n to clock + 1000 n + 400.
  std::uint64_t clock = 5000000;
  bool is_pinned = false;
  int enabled_kinds = 0;
  int complete_flushes = 0;  ///< of records that are complete
  bool was_forced_first = false;
};

// Exported by the fake, by these names:
using BehaviourOf = FakeBehaviour* (*)();  // fake_cupti_behaviour
/// fake_cupti_add: records that the next flush delivers.
using AddRecords = void (*)(const std::uint8_t* bytes, std::size_t size);
/// fake_cupti_take_over: another client comes, and a buffer of the first never returns.
using TakeOver = void (*)();

}  // namespace tidemark::profiler::cupti
