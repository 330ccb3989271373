// The part of CUPTI's interface that is used, as numbers: the program is the same whether it was
// built with a toolkit or without, and runs with every CUPTI that keeps its promise to only append
// to records. Tests compare each line with NVIDIA's header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::profiler::cupti {

using Result = int;  // CUptiResult; 0 = success
inline constexpr Result success = 0, end_of_buffer = 12, too_many_subscribers = 39;

/// CUPTI's of CUDA 12 are numbered 19 (12.0) to 28 (12.9 update 1), those of CUDA 13 are 13xxxx.
/// What is read lies at the same places in the records of both, but for the data of overheads,
/// which only the later ones have.
inline constexpr std::uint32_t oldest_version = 19, first_of_13 = 130000;
constexpr bool is_known(std::uint32_t version) {
  return (version >= oldest_version && version < 100) || version / 10000 == first_of_13 / 10000;
}

enum Kind : std::uint32_t {  // CUpti_ActivityKind
  kind_memcpy = 1,
  kind_memset = 2,
  kind_driver = 4,
  kind_runtime = 5,
  kind_concurrent_kernel = 10,
  kind_overhead = 17,
  kind_synchronization = 38,
  kind_external_correlation = 39,
  kind_memory = 49,  // MEMORY2: one record per allocation and per release
  kind_memory_pool = 50,
};

inline constexpr int attribute_device_buffer_size = 0, attribute_host_pinned = 8;
inline constexpr int correlation_custom0 = 3;
inline constexpr std::uint32_t flush_forced = 1;

/// A field of a record.
template <typename T>
struct Field {
  using type = T;
  std::size_t offset;
};
using U8 = Field<std::uint8_t>;
using U16 = Field<std::uint16_t>;
using U32 = Field<std::uint32_t>;
using U64 = Field<std::uint64_t>;

inline constexpr U32 kind{0};  // of every record

namespace kernel {  // CUpti_ActivityKernel10
inline constexpr U16 registers{6};
inline constexpr U64 start{16}, end{24}, name{104}, local_memory{192};
inline constexpr U32 device{40}, stream{48}, grid_x{52}, grid_y{56}, grid_z{60}, block_x{64},
    block_y{68}, block_z{72}, static_shared{76}, dynamic_shared{80}, correlation{92};
}  // namespace kernel

namespace memcpy_record {  // CUpti_ActivityMemcpy6
inline constexpr U8 copy_kind{4}, source_kind{5}, target_kind{6}, flags{7};  // flags: 1 = async
inline constexpr U64 bytes{8}, start{16}, end{24};
inline constexpr U32 device{32}, stream{40}, correlation{44};
inline constexpr std::uint8_t to_device = 1, to_host = 2, within_device = 8;  // copy kinds
inline constexpr std::uint8_t pinned = 2;                                     // memory kinds
}  // namespace memcpy_record

namespace memset_record {  // CUpti_ActivityMemset4
inline constexpr U64 bytes{8}, start{16}, end{24};
inline constexpr U32 device{32}, stream{40}, correlation{44};
}  // namespace memset_record

namespace memory {  // CUpti_ActivityMemory4
inline constexpr U32 operation{4}, memory_kind{8}, correlation{12}, device_id{52}, stream{60},
    is_async{72};
inline constexpr U64 address{16}, bytes{24}, time{32};
inline constexpr std::uint32_t release = 2, device = 3;
}  // namespace memory

namespace memory_pool {  // CUpti_ActivityMemoryPool2 and 3
inline constexpr U32 operation{4}, type{8}, device{20};
inline constexpr U64 address{32}, size{40}, release_threshold{48}, time{56}, used{64};
}  // namespace memory_pool

namespace api {  // CUpti_ActivityAPI
inline constexpr U64 start{8}, end{16};
inline constexpr U32 thread{28}, correlation{32};
}  // namespace api

namespace synchronization {  // CUpti_ActivitySynchronization2
inline constexpr U32 type{4};
inline constexpr U64 start{8}, end{16};
inline constexpr std::uint32_t stream_waits_for_event = 2;
}  // namespace synchronization

namespace external_correlation {  // CUpti_ActivityExternalCorrelation
inline constexpr U32 external_kind{4}, correlation{16};
inline constexpr U64 external_id{8};
}  // namespace external_correlation

namespace overhead {  // CUpti_ActivityOverhead3
inline constexpr U32 overhead_kind{4};
inline constexpr U64 start{24}, end{32}, data{48};  // data: to be freed by whoever reads
}  // namespace overhead

extern "C" {
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);
}

/// The functions, by their names without "cupti".
struct Functions {
  Result (*GetVersion)(std::uint32_t* version);
  Result (*GetResultString)(Result result, const char** text);
  Result (*GetTimestamp)(std::uint64_t* nanoseconds);
  Result (*ActivityRegisterCallbacks)(BufferRequested requested, BufferCompleted completed);
  Result (*ActivityEnable)(std::uint32_t kind);
  Result (*ActivityDisable)(std::uint32_t kind);
  Result (*ActivityGetNextRecord)(std::uint8_t* buffer, std::size_t size, std::uint8_t** record);
  Result (*ActivityGetNumDroppedRecords)(void* context, std::uint32_t stream, std::size_t* dropped);
  Result (*ActivityFlushAll)(std::uint32_t flags);
  Result (*ActivitySetAttribute)(int attribute, std::size_t* size, void* value);
  Result (*ActivityGetAttribute)(int attribute, std::size_t* size, void* value);
  Result (*ActivityPushExternalCorrelationId)(int kind, std::uint64_t id);
  Result (*ActivityPopExternalCorrelationId)(int kind, std::uint64_t* last);
};

}  // namespace tidemark::profiler::cupti
