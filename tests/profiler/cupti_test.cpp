// CUPTI's records: decoding with the fake library, and with the real one where it is installed,
// which needs no GPU for that; recording with the fake one.
#include "profiler/cupti.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "profiler/null_backend.h"
#include "profiler/observed_backend.h"
#include "tests/fake_libraries/fake_cupti.h"

namespace tidemark::profiler::cupti_test {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using cupti::RecordWriter;
using testing::HasSubstr;

cupti::FakeBehaviour& behaviour() {
  void* const library = dlopen(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so", RTLD_NOW);
  using Get = cupti::FakeBehaviour* (*)();
  return *reinterpret_cast<Get>(dlsym(library, "fake_cupti_behaviour"))();
}

/// The fake library as it was, before and after each test.
class Cupti : public testing::Test {
 protected:
  Cupti() { behaviour() = {}; }
  ~Cupti() override { behaviour() = {}; }
  std::shared_ptr<const CuptiLibrary> fake_ =
      std::make_shared<CuptiLibrary>(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so");
};

CuptiRecording decoded(const CuptiLibrary& library, RecordWriter& writer) {
  CuptiRecording recording;
  decode(library, writer.bytes, recording);
  return recording;
}

/// Decoding, by the fake library and by NVIDIA's.
class CuptiDecode : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      library_.emplace(GetParam());
    } catch (const InputError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::optional<CuptiLibrary> library_;
};

INSTANTIATE_TEST_SUITE_P(Libraries, CuptiDecode,
                         testing::Values(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so",
                                         "libcupti.so.13"),
                         [](const auto& param_info) {
                           return param_info.index == 0 ? std::string("Fake") : "Nvidia";
                         });

TEST_P(CuptiDecode, AKernel) {
  using namespace cupti::kernel;
  const char* const text = "_Z4gemm";
  RecordWriter writer;
  writer.kernel(1000, 3500, 17).set(stream, 7).set(registers, 168);
  writer.set(grid_x, 100).set(grid_y, 20).set(grid_z, 3);
  writer.set(block_x, 32).set(block_y, 4).set(block_z, 2);
  writer.set(static_shared, 1024).set(dynamic_shared, 2048).set(local_memory, 4096);
  writer.set(cupti::kernel::name, reinterpret_cast<std::uintptr_t>(text));
  const CuptiRecording found = decoded(*library_, writer);
  ASSERT_EQ(found.kernels.size(), 1u);
  const GpuKernel& kernel = found.kernels[0];
  EXPECT_EQ(kernel.name, "_Z4gemm");
  EXPECT_EQ(kernel.begin, 1000ns);
  EXPECT_EQ(kernel.end, 3500ns);
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.correlation, 17u);
  EXPECT_EQ(kernel.blocks, 6000u);
  EXPECT_EQ(kernel.threads, 256u);
  EXPECT_EQ(kernel.shared_memory, 3_KiB);
  EXPECT_EQ(kernel.local_memory, 4_KiB);
  EXPECT_EQ(kernel.registers, 168);
}

TEST_P(CuptiDecode, CopiesAndSets) {
  using namespace cupti::memcpy_record;
  RecordWriter writer;
  writer.begin(cupti::kind_memcpy).set(copy_kind, to_host).set(target_kind, pinned);
  writer.set(bytes, 4096).set(start, 10).set(end, 20).set(stream, 3).set(correlation, 5);
  writer.begin(cupti::kind_memcpy).set(copy_kind, to_device).set(source_kind, 1);
  writer.set(bytes, 1).set(start, 20).set(end, 21);
  writer.begin(cupti::kind_memset).set(cupti::memset_record::bytes, 64);
  writer.set(cupti::memset_record::start, 30).set(cupti::memset_record::end, 31);
  const CuptiRecording found = decoded(*library_, writer);
  ASSERT_EQ(found.transfers.size(), 3u);
  EXPECT_EQ(found.transfers[0].kind, GpuTransfer::Kind::ToHost);
  EXPECT_TRUE(found.transfers[0].is_pinned);
  EXPECT_EQ(found.transfers[0].size, 4_KiB);
  EXPECT_EQ(found.transfers[0].end, 20ns);
  EXPECT_EQ(found.transfers[0].stream, 3u);
  EXPECT_EQ(found.transfers[0].correlation, 5u);
  EXPECT_EQ(found.transfers[1].kind, GpuTransfer::Kind::ToDevice);
  EXPECT_FALSE(found.transfers[1].is_pinned);
  EXPECT_EQ(found.transfers[2].kind, GpuTransfer::Kind::Set);
  EXPECT_EQ(found.transfers[2].size, 64_B);
}

TEST_P(CuptiDecode, MemoryWaitsAndOverhead) {
  RecordWriter writer;
  writer.begin(cupti::kind_memory).set(cupti::memory::operation, 1);
  writer.set(cupti::memory::memory_kind, cupti::memory::device).set(cupti::memory::bytes, 1 << 20);
  writer.set(cupti::memory::address, 0x7f0000).set(cupti::memory::time, 77);
  writer.begin(cupti::kind_memory).set(cupti::memory::operation, cupti::memory::release);
  writer.begin(cupti::kind_synchronization).set(cupti::synchronization::type, 3);
  writer.set(cupti::synchronization::start, 5).set(cupti::synchronization::end, 9);
  writer.begin(cupti::kind_synchronization)
      .set(cupti::synchronization::type, cupti::synchronization::stream_waits_for_event);
  writer.begin(cupti::kind_overhead).set(cupti::overhead::overhead_kind, 1 << 16);
  writer.set(cupti::overhead::start, 100).set(cupti::overhead::end, 180);
  // Must be freed by the decoder: the address sanitizer's leak check tells.
  writer.set(cupti::overhead::data, reinterpret_cast<std::uintptr_t>(std::malloc(16)));
  const CuptiRecording found = decoded(*library_, writer);
  ASSERT_EQ(found.allocations.size(), 2u);
  EXPECT_FALSE(found.allocations[0].is_release);
  EXPECT_TRUE(found.allocations[0].is_device);
  EXPECT_EQ(found.allocations[0].size, 1_MiB);
  EXPECT_EQ(found.allocations[0].address, 0x7f0000u);
  EXPECT_EQ(found.allocations[0].time, 77ns);
  EXPECT_TRUE(found.allocations[1].is_release);
  ASSERT_EQ(found.waits.size(), 2u);
  EXPECT_TRUE(found.waits[0].is_of_host);
  EXPECT_EQ(found.waits[0].end, 9ns);
  EXPECT_FALSE(found.waits[1].is_of_host);
  ASSERT_EQ(found.overheads.size(), 1u);
  EXPECT_EQ(found.overheads[0].kind, 65536u);
  EXPECT_EQ(found.overheads[0].end - found.overheads[0].begin, 80ns);
}

TEST_P(CuptiDecode, WhatCannotBeUsedIsCounted) {
  RecordWriter writer;
  writer.kernel(0, 0, 1);             // CUPTI's way to say that it has no times
  writer.begin(48);                   // CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API: nobody asked
  writer.begin(cupti::kind_runtime);  // asked for, but only for what comes with it
  writer.begin(cupti::kind_external_correlation)
      .set(cupti::external_correlation::external_kind, 1);  // another tool's id
  writer.kernel(10, 20, 2);
  const CuptiRecording found = decoded(*library_, writer);
  EXPECT_EQ(found.kernels.size(), 1u);
  EXPECT_EQ(found.without_times, 1u);
  EXPECT_EQ(found.unknown, 1u);
  EXPECT_TRUE(found.steps.empty());
}

TEST_P(CuptiDecode, AnEmptyBufferHasNoRecords) {
  RecordWriter writer;
  EXPECT_TRUE(decoded(*library_, writer).kernels.empty());
}

TEST(CuptiJoin, ARunLastsFromItsFirstToItsLastKernel) {
  CuptiRecording recording;
  recording.steps = {{11, 0}, {12, 0}, {13, 2}, {14, 9}};
  const auto kernel = [](Nanoseconds begin, Nanoseconds end, CorrelationId id) {
    GpuKernel made;
    made.begin = begin, made.end = end, made.correlation = id;
    return made;
  };
  recording.kernels = {kernel(1030ns, 1040ns, 12), kernel(1010ns, 1020ns, 11),
                       kernel(5000ns, 5001ns, 99)};  // of nobody's step
  GpuTransfer copy;
  copy.begin = 1050ns, copy.end = 1090ns, copy.correlation = 13;
  recording.transfers = {copy};
  std::size_t unseen = 99;
  const std::vector<Ran> ran = with_seen_times(
      {{40, 0, 1ns, 2ns}, {41, 1, 3ns, 4ns}, {42, 1, 5ns, 6ns}}, recording, 1000ns, &unseen);
  ASSERT_EQ(ran.size(), 3u);
  EXPECT_EQ(ran[0].step, 40u);
  EXPECT_EQ(ran[0].begin, 10ns);
  EXPECT_EQ(ran[0].end, 40ns);
  EXPECT_EQ(ran[1].begin, 3ns);  // unseen: as the backend said
  EXPECT_EQ(ran[2].stream, 1);
  EXPECT_EQ(ran[2].begin, 50ns);
  EXPECT_EQ(ran[2].end, 90ns);
  EXPECT_EQ(unseen, 1u);
}

TEST_F(Cupti, AnObservedBackendTellsTheTimesThatCuptiSaw) {
  ObservedBackend backend([] { return std::make_unique<NullBackend>(); }, fake_);
  EXPECT_TRUE(behaviour().is_pinned);
  for (int step = 0; step < 2; ++step) {  // records of one step do not leak into the next
    backend.begin_step(2, 0, {});
    backend.run(4, 0, Call{});
    backend.copy(5, 1, nullptr, nullptr, 0_B);
    const std::vector<Ran> ran = backend.finish();
    ASSERT_EQ(ran.size(), 2u);
    EXPECT_EQ(ran[0].step, 4u);
    EXPECT_EQ(ran[0].begin, 0ns);
    EXPECT_EQ(ran[0].end, 400ns);
    EXPECT_EQ(ran[1].stream, 1);
    EXPECT_EQ(ran[1].begin, 1000ns);
    EXPECT_EQ(ran[1].end, 1400ns);
    EXPECT_EQ(backend.unseen(), 0u);
    EXPECT_EQ(backend.recording().kernels.size(), 2u);
  }
}

// Whole steps are timed as they are without it.
TEST_F(Cupti, NobodyWatchesWholeSteps) {
  ObservedBackend backend([] { return std::make_unique<NullBackend>(); }, fake_);
  EXPECT_GT(behaviour().enabled_kinds, 0);
  backend.time_by(Timing::WholeStep);
  EXPECT_EQ(behaviour().enabled_kinds, 0);
  backend.begin_step(1, 0, {});
  backend.run(4, 0, Call{});
  EXPECT_EQ(backend.finish().size(), 1u);
  backend.time_by(Timing::EachRun);
  backend.begin_step(1, 0, {});
  backend.run(4, 0, Call{});
  EXPECT_EQ(backend.finish().at(0).end, 400ns);
  EXPECT_EQ(backend.recording().kernels.size(), 1u);
}

// A forced flush hands over records that have no times yet.
TEST_F(Cupti, WhatIsCompleteIsFlushedBeforeTheRest) {
  CuptiRecorder recorder(fake_);
  recorder.start();
  recorder.push(0), recorder.pop();
  recorder.take();
  EXPECT_EQ(behaviour().complete_flushes, 1);
  EXPECT_FALSE(behaviour().was_forced_first);
}

TEST_F(Cupti, FullBuffersAreReadDuringTheStep) {
  CuptiRecorder recorder(fake_);
  recorder.start();
  for (std::uint64_t step = 0; step < 100; ++step) {  // 64 buffers are the most
    recorder.push(step), recorder.pop();
    fake_->functions().ActivityFlushAll(0);  // this one is full, says CUPTI
    recorder.drain();
  }
  const CuptiRecording recording = recorder.take();
  EXPECT_EQ(recording.kernels.size(), 100u);
  EXPECT_EQ(recording.dropped, 0u);
  EXPECT_EQ(recording.host_buffers, 8_MiB);
}

/// With a plugin that finds no GPU, and this CUPTI.
void expect_nothing_to_observe(const char* cupti_file) {
  setenv("TIDEMARK_CUDA_PLUGIN", TIDEMARK_FAKE_LIBRARIES "/fake_plugin_without_gpu.so", 1);
  setenv("TIDEMARK_CUPTI", cupti_file, 1);
  std::string note;
  EXPECT_THROW(load_observed_cuda_backend(note), NoDevice);
  EXPECT_EQ(note, "");
  EXPECT_EQ(behaviour().enabled_kinds, 0);
  unsetenv("TIDEMARK_CUPTI");
  unsetenv("TIDEMARK_CUDA_PLUGIN");
}

TEST_F(Cupti, WithoutAGpuThereIsNothingToObserve) {
  expect_nothing_to_observe(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so");
}

TEST_F(Cupti, WithoutAGpuNobodyHearsThatCuptiIsMissing) {
  expect_nothing_to_observe("/nowhere/libcupti.so.13");
}

TEST_F(Cupti, ItsOwnFootprintAndWhatItDroppedAreTold) {
  CuptiRecorder recorder(fake_);
  recorder.start();
  EXPECT_EQ(behaviour().enabled_kinds, 9);
  recorder.push(0), recorder.pop();
  behaviour().dropped = 12;
  const CuptiRecording recording = recorder.take();
  EXPECT_EQ(recording.dropped, 12u);
  EXPECT_EQ(recording.version, 130001u);
  EXPECT_EQ(recording.host_buffers, 8_MiB);
  const std::string text = summary(recording);
  EXPECT_THAT(text, HasSubstr("1 kernels"));
  EXPECT_THAT(text, HasSubstr("12 RECORDS WERE DROPPED"));
  EXPECT_THAT(text, HasSubstr("9.16 MiB in pinned host memory"));
  EXPECT_EQ(recorder.take().dropped, 0u);  // told once
}

TEST_F(Cupti, TheRecorderTurnsOffWhatItTurnedOn) {
  {
    CuptiRecorder recorder(fake_);
    recorder.start();
  }
  EXPECT_EQ(behaviour().enabled_kinds, 0);
  EXPECT_NO_THROW(CuptiRecorder again(fake_));
}

TEST_F(Cupti, OnlyOneRecordsAtATime) {
  const CuptiRecorder recorder(fake_);
  EXPECT_THROW(CuptiRecorder second(fake_), InputError);
}

TEST_F(Cupti, WhoHoldsItIsGuessedAt) {
  behaviour().enable_result = cupti::too_many_subscribers;
  CuptiRecorder recorder(fake_);
  try {
    recorder.start();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("FAKE_MULTIPLE_SUBSCRIBERS"));
    EXPECT_THAT(error.what(), HasSubstr("another profiler or debugger"));
  }
}

TEST_F(Cupti, AnotherVersionIsRefused) {
  for (const std::uint32_t version : {18u, 140000u}) {  // CUDA 11.8, one that is to come
    behaviour().version = version;
    try {
      const CuptiLibrary library(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so");
      ADD_FAILURE();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("version {}", version)));
    }
  }
}

// Its overheads have no data that a reader would have to free.
TEST_F(Cupti, TheOneOfCuda12IsNotAskedForOverheads) {
  behaviour().version = 28;
  CuptiRecorder recorder(std::make_shared<CuptiLibrary>(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so"));
  recorder.start();
  EXPECT_EQ(behaviour().enabled_kinds, 8);
  recorder.push(3), recorder.pop();
  EXPECT_EQ(recorder.take().kernels.size(), 1u);
}

TEST(CuptiFiles, CanBeTurnedOff) {
  setenv("TIDEMARK_CUPTI", "off", 1);
  try {
    const CuptiLibrary library;
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("TIDEMARK_CUPTI says off"));
  }
  unsetenv("TIDEMARK_CUPTI");
}

TEST(CuptiFiles, AMissingLibraryAndOneThatIsNoneAreNamed) {
  try {
    const CuptiLibrary library("/nowhere/libcupti.so.13");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/libcupti.so.13"));
    EXPECT_THAT(error.what(), HasSubstr("TIDEMARK_CUPTI"));
  }
  try {
    const CuptiLibrary library("libc.so.6");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("libc.so.6: no cuptiGetVersion"));
  }
}

}  // namespace
}  // namespace tidemark::profiler::cupti_test
