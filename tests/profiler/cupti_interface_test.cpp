// The numbers of profiler/cupti_interface.h against NVIDIA's own header, where there is one.
#include "profiler/cupti_interface.h"

#include <gtest/gtest.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#if __has_include(<cupti_activity_deprecated.h>)
#include <cupti_activity_deprecated.h>
#define TIDEMARK_HAS_OLD_RECORDS
#endif

#include <cstddef>

#include "tests/fake_libraries/fake_cupti.h"

namespace tidemark::profiler::cupti::cupti_interface_test {
namespace {

#define EXPECT_FIELD(field, record, member)                                   \
  EXPECT_EQ((field).offset, offsetof(record, member)) << #record "." #member; \
  EXPECT_EQ(sizeof(decltype(field)::type), sizeof(record::member)) << #record "." #member

TEST(CuptiInterface, FieldsLieWhereTheHeaderPutsThem) {
  EXPECT_FIELD(kernel::registers, CUpti_ActivityKernel10, registersPerThread);
  EXPECT_FIELD(kernel::start, CUpti_ActivityKernel10, start);
  EXPECT_FIELD(kernel::end, CUpti_ActivityKernel10, end);
  EXPECT_FIELD(kernel::name, CUpti_ActivityKernel10, name);
  EXPECT_FIELD(kernel::local_memory, CUpti_ActivityKernel10, localMemoryTotal_v2);
  EXPECT_FIELD(kernel::stream, CUpti_ActivityKernel10, streamId);
  EXPECT_FIELD(kernel::grid_x, CUpti_ActivityKernel10, gridX);
  EXPECT_FIELD(kernel::grid_y, CUpti_ActivityKernel10, gridY);
  EXPECT_FIELD(kernel::grid_z, CUpti_ActivityKernel10, gridZ);
  EXPECT_FIELD(kernel::block_x, CUpti_ActivityKernel10, blockX);
  EXPECT_FIELD(kernel::block_y, CUpti_ActivityKernel10, blockY);
  EXPECT_FIELD(kernel::block_z, CUpti_ActivityKernel10, blockZ);
  EXPECT_FIELD(kernel::static_shared, CUpti_ActivityKernel10, staticSharedMemory);
  EXPECT_FIELD(kernel::dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
  EXPECT_FIELD(kernel::correlation, CUpti_ActivityKernel10, correlationId);
  EXPECT_FIELD(memcpy_record::copy_kind, CUpti_ActivityMemcpy6, copyKind);
  EXPECT_FIELD(memcpy_record::source_kind, CUpti_ActivityMemcpy6, srcKind);
  EXPECT_FIELD(memcpy_record::target_kind, CUpti_ActivityMemcpy6, dstKind);
  EXPECT_FIELD(memcpy_record::bytes, CUpti_ActivityMemcpy6, bytes);
  EXPECT_FIELD(memcpy_record::start, CUpti_ActivityMemcpy6, start);
  EXPECT_FIELD(memcpy_record::end, CUpti_ActivityMemcpy6, end);
  EXPECT_FIELD(memcpy_record::stream, CUpti_ActivityMemcpy6, streamId);
  EXPECT_FIELD(memcpy_record::correlation, CUpti_ActivityMemcpy6, correlationId);
  EXPECT_FIELD(memset_record::bytes, CUpti_ActivityMemset4, bytes);
  EXPECT_FIELD(memset_record::start, CUpti_ActivityMemset4, start);
  EXPECT_FIELD(memset_record::end, CUpti_ActivityMemset4, end);
  EXPECT_FIELD(memset_record::stream, CUpti_ActivityMemset4, streamId);
  EXPECT_FIELD(memset_record::correlation, CUpti_ActivityMemset4, correlationId);
  EXPECT_FIELD(memory::operation, CUpti_ActivityMemory4, memoryOperationType);
  EXPECT_FIELD(memory::memory_kind, CUpti_ActivityMemory4, memoryKind);
  EXPECT_FIELD(memory::address, CUpti_ActivityMemory4, address);
  EXPECT_FIELD(memory::bytes, CUpti_ActivityMemory4, bytes);
  EXPECT_FIELD(memory::time, CUpti_ActivityMemory4, timestamp);
  EXPECT_FIELD(memory::correlation, CUpti_ActivityMemory4, correlationId);
  EXPECT_FIELD(memory::device_id, CUpti_ActivityMemory4, deviceId);
  EXPECT_FIELD(memory::stream, CUpti_ActivityMemory4, streamId);
  EXPECT_FIELD(memory::is_async, CUpti_ActivityMemory4, isAsync);
  EXPECT_FIELD(memory_pool::operation, CUpti_ActivityMemoryPool3, memoryPoolOperationType);
  EXPECT_FIELD(memory_pool::type, CUpti_ActivityMemoryPool3, memoryPoolType);
  EXPECT_FIELD(memory_pool::device, CUpti_ActivityMemoryPool3, deviceId);
  EXPECT_FIELD(memory_pool::address, CUpti_ActivityMemoryPool3, address);
  EXPECT_FIELD(memory_pool::size, CUpti_ActivityMemoryPool3, size);
  EXPECT_FIELD(memory_pool::release_threshold, CUpti_ActivityMemoryPool3, releaseThreshold);
  EXPECT_FIELD(memory_pool::time, CUpti_ActivityMemoryPool3, timestamp);
  EXPECT_FIELD(memory_pool::used, CUpti_ActivityMemoryPool3, utilizedSize);
  EXPECT_FIELD(api::start, CUpti_ActivityAPI, start);
  EXPECT_FIELD(api::end, CUpti_ActivityAPI, end);
  EXPECT_FIELD(api::thread, CUpti_ActivityAPI, threadId);
  EXPECT_FIELD(api::correlation, CUpti_ActivityAPI, correlationId);
  EXPECT_FIELD(kernel::device, CUpti_ActivityKernel10, deviceId);
  EXPECT_FIELD(memcpy_record::device, CUpti_ActivityMemcpy6, deviceId);
  EXPECT_FIELD(memcpy_record::flags, CUpti_ActivityMemcpy6, flags);
  EXPECT_FIELD(memset_record::device, CUpti_ActivityMemset4, deviceId);
  EXPECT_FIELD(synchronization::type, CUpti_ActivitySynchronization2, type);
  EXPECT_FIELD(synchronization::start, CUpti_ActivitySynchronization2, start);
  EXPECT_FIELD(synchronization::end, CUpti_ActivitySynchronization2, end);
  EXPECT_FIELD(external_correlation::external_kind, CUpti_ActivityExternalCorrelation,
               externalKind);
  EXPECT_FIELD(external_correlation::external_id, CUpti_ActivityExternalCorrelation, externalId);
  EXPECT_FIELD(external_correlation::correlation, CUpti_ActivityExternalCorrelation, correlationId);
  EXPECT_FIELD(overhead::overhead_kind, CUpti_ActivityOverhead3, overheadKind);
  EXPECT_FIELD(overhead::start, CUpti_ActivityOverhead3, start);
  EXPECT_FIELD(overhead::end, CUpti_ActivityOverhead3, end);
  EXPECT_FIELD(overhead::data, CUpti_ActivityOverhead3, overheadData);
}

#if defined(TIDEMARK_HAS_OLD_RECORDS)
// What CUDA 12 writes: later headers keep its records, too.
TEST(CuptiInterface, FieldsOfCuda12LieAtTheSamePlaces) {
  EXPECT_FIELD(kernel::registers, CUpti_ActivityKernel8, registersPerThread);
  EXPECT_FIELD(kernel::start, CUpti_ActivityKernel8, start);
  EXPECT_FIELD(kernel::end, CUpti_ActivityKernel8, end);
  EXPECT_FIELD(kernel::name, CUpti_ActivityKernel8, name);
  EXPECT_FIELD(kernel::local_memory, CUpti_ActivityKernel8, localMemoryTotal_v2);
  EXPECT_FIELD(kernel::stream, CUpti_ActivityKernel8, streamId);
  EXPECT_FIELD(kernel::grid_x, CUpti_ActivityKernel8, gridX);
  EXPECT_FIELD(kernel::block_x, CUpti_ActivityKernel8, blockX);
  EXPECT_FIELD(kernel::static_shared, CUpti_ActivityKernel8, staticSharedMemory);
  EXPECT_FIELD(kernel::dynamic_shared, CUpti_ActivityKernel8, dynamicSharedMemory);
  EXPECT_FIELD(kernel::correlation, CUpti_ActivityKernel8, correlationId);
  EXPECT_FIELD(memcpy_record::bytes, CUpti_ActivityMemcpy5, bytes);
  EXPECT_FIELD(memcpy_record::start, CUpti_ActivityMemcpy5, start);
  EXPECT_FIELD(memcpy_record::end, CUpti_ActivityMemcpy5, end);
  EXPECT_FIELD(memcpy_record::stream, CUpti_ActivityMemcpy5, streamId);
  EXPECT_FIELD(memcpy_record::correlation, CUpti_ActivityMemcpy5, correlationId);
  EXPECT_FIELD(memory::operation, CUpti_ActivityMemory3, memoryOperationType);
  EXPECT_FIELD(memory::memory_kind, CUpti_ActivityMemory3, memoryKind);
  EXPECT_FIELD(memory::address, CUpti_ActivityMemory3, address);
  EXPECT_FIELD(memory::bytes, CUpti_ActivityMemory3, bytes);
  EXPECT_FIELD(memory::time, CUpti_ActivityMemory3, timestamp);
  EXPECT_FIELD(synchronization::type, CUpti_ActivitySynchronization, type);
  EXPECT_FIELD(synchronization::start, CUpti_ActivitySynchronization, start);
  EXPECT_FIELD(synchronization::end, CUpti_ActivitySynchronization, end);
}

TEST(CuptiInterface, TheFakesRecordsOfCuda12HaveTheHeadersSizes) {
  EXPECT_FIELD(kernel::name, CUpti_ActivityKernel9, name);
  EXPECT_FIELD(kernel::local_memory, CUpti_ActivityKernel9, localMemoryTotal_v2);
  EXPECT_FIELD(kernel::correlation, CUpti_ActivityKernel9, correlationId);
  EXPECT_FIELD(memcpy_record::correlation, CUpti_ActivityMemcpy5, correlationId);
  EXPECT_FIELD(memory::is_async, CUpti_ActivityMemory3, isAsync);
  EXPECT_FIELD(memory_pool::used, CUpti_ActivityMemoryPool2, utilizedSize);
  EXPECT_EQ(record_size(kind_concurrent_kernel, cupti_12_4), sizeof(CUpti_ActivityKernel9));
  EXPECT_EQ(record_size(kind_memcpy, cupti_12_4), sizeof(CUpti_ActivityMemcpy5));
  EXPECT_EQ(record_size(kind_memory, cupti_12_4), sizeof(CUpti_ActivityMemory3));
  EXPECT_EQ(record_size(kind_memory_pool, cupti_12_4), sizeof(CUpti_ActivityMemoryPool2));
}
#endif

TEST(CuptiInterface, NumbersAreTheHeaders) {
  EXPECT_EQ(kind_memcpy, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_MEMCPY));
  EXPECT_EQ(kind_memset, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_MEMSET));
  EXPECT_EQ(kind_driver, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_DRIVER));
  EXPECT_EQ(kind_runtime, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(kind_concurrent_kernel, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(kind_overhead, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_OVERHEAD));
  EXPECT_EQ(kind_synchronization, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
  EXPECT_EQ(kind_external_correlation,
            static_cast<unsigned>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  EXPECT_EQ(kind_memory, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_MEMORY2));
  EXPECT_EQ(kind_memory_pool, static_cast<unsigned>(CUPTI_ACTIVITY_KIND_MEMORY_POOL));
  EXPECT_EQ(end_of_buffer, CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(too_many_subscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_EQ(attribute_device_buffer_size, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
  EXPECT_EQ(attribute_host_pinned, CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
  EXPECT_EQ(correlation_custom0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
  EXPECT_EQ(flush_forced, static_cast<unsigned>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_EQ(memcpy_record::to_device, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  EXPECT_EQ(memcpy_record::to_host, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  EXPECT_EQ(memcpy_record::within_device, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  EXPECT_EQ(memcpy_record::pinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  EXPECT_EQ(memory::device, static_cast<unsigned>(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE));
  EXPECT_EQ(memory::release, static_cast<unsigned>(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE));
  EXPECT_EQ(synchronization::stream_waits_for_event,
            static_cast<unsigned>(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT));
}

TEST(CuptiInterface, TheFakesRecordsHaveTheHeadersSizes) {
  EXPECT_EQ(record_size(kind_concurrent_kernel), sizeof(CUpti_ActivityKernel10));
  EXPECT_EQ(record_size(kind_memcpy), sizeof(CUpti_ActivityMemcpy6));
  EXPECT_EQ(record_size(kind_memset), sizeof(CUpti_ActivityMemset4));
  EXPECT_EQ(record_size(kind_memory), sizeof(CUpti_ActivityMemory4));
  EXPECT_EQ(record_size(kind_memory_pool), sizeof(CUpti_ActivityMemoryPool3));
  EXPECT_EQ(record_size(kind_synchronization), sizeof(CUpti_ActivitySynchronization2));
  EXPECT_EQ(record_size(kind_external_correlation), sizeof(CUpti_ActivityExternalCorrelation));
  EXPECT_EQ(record_size(kind_overhead), sizeof(CUpti_ActivityOverhead3));
  EXPECT_EQ(record_size(kind_runtime), sizeof(CUpti_ActivityAPI));
  EXPECT_EQ(record_size(kind_driver), sizeof(CUpti_ActivityAPI));
}

}  // namespace
}  // namespace tidemark::profiler::cupti::cupti_interface_test

#else

TEST(CuptiInterface, FieldsLieWhereTheHeaderPutsThem) {
  GTEST_SKIP() << "no CUDA toolkit, so no cupti.h to compare with";
}

#endif
