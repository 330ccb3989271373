// The CUDA backend itself: memory, order, events, faults.
#include <gmock/gmock.h>

#include "base/error.h"
#include "kernels/cuda_plugin.h"
#include "tests/gpu/gpu.h"

namespace tidemark::backend_test {
namespace {

using testing::HasSubstr;
using namespace literals;

class CudaBackend : public testing::Test {
 protected:
  /// outputs[0] = inputs[0] + inputs[1], fp32 [count] each.
  static Call sum(std::byte* a, std::byte* b, std::byte* y, std::int64_t count) {
    Call call;
    call.pass = Pass::Accumulate;
    const Layout layout = dense({count});
    for (std::byte* x : {a, b}) call.inputs.push_back(array_at(x, DType::Float32, layout));
    call.outputs.push_back(array_at(y, DType::Float32, layout));
    return call;
  }
  static std::vector<float> read(const std::byte* from, std::size_t count) {
    std::vector<float> values(count);
    gpu()->download(values.data(), from, {static_cast<std::int64_t>(count * sizeof(float))});
    return values;
  }
};

TEST_F(CudaBackend, SaysWhatItIs) {
  EXPECT_EQ(gpu()->name(), "cuda");
  EXPECT_THAT(gpu()->description(), HasSubstr("driver for CUDA"));
  EXPECT_GT(gpu()->capacity(), 1_GiB);
}

TEST_F(CudaBackend, MemoryIsZeroOnBothSides) {
  for (const MemoryKind kind : {MemoryKind::Device, MemoryKind::Host}) {
    const auto memory = gpu()->allocate(4_KiB, kind);
    EXPECT_EQ(memory->size(), 4_KiB);
    EXPECT_EQ(read(memory->data(), 1024), std::vector<float>(1024));
  }
}

TEST_F(CudaBackend, MoreMemoryThanTheDeviceHasIsRefused) {
  try {
    gpu()->allocate({gpu()->capacity().count + (1 << 30)}, MemoryKind::Device);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot allocate"));
    EXPECT_THAT(error.what(), HasSubstr("cudaErrorMemoryAllocation"));
  }
  EXPECT_NO_THROW(gpu()->allocate(1_MiB, MemoryKind::Device));  // and nothing else is broken
}

TEST_F(CudaBackend, StreamsKeepTheOrderOfTheirEvents) {
  constexpr std::int64_t count = 1 << 20;
  const auto memory = gpu()->allocate({count * 4}, MemoryKind::Device);
  std::vector<float> ones(count, 1);
  gpu()->upload(memory->data(), ones.data(), {count * 4});
  const Call doubling = sum(memory->data(), memory->data(), memory->data(), count);
  gpu()->begin_step(2, 20, {});
  for (std::uint32_t i = 0; i < 20; ++i) {  // 2 to the 20th, handed from stream to stream
    gpu()->run(i, i % 2, doubling);
    gpu()->record(i % 2, i);
    gpu()->wait((i + 1) % 2, i);
  }
  const std::vector<Ran> ran = gpu()->finish();
  EXPECT_EQ(read(memory->data(), count), std::vector<float>(count, 1 << 20));
  ASSERT_EQ(ran.size(), 20u);
  for (std::size_t i = 1; i < ran.size(); ++i) {
    EXPECT_EQ(ran[i].step, i);
    EXPECT_LE(ran[i - 1].begin, ran[i].end);
    EXPECT_LE(ran[i].begin, ran[i].end);
  }
}

TEST_F(CudaBackend, CopiesGoBothWaysOnAStream) {
  const auto device = gpu()->allocate(4_KiB, MemoryKind::Device);
  const auto host = gpu()->allocate(8_KiB, MemoryKind::Host);
  auto* const numbers = reinterpret_cast<float*>(host->data());
  for (int i = 0; i < 1024; ++i) numbers[i] = static_cast<float>(i);
  gpu()->begin_step(1, 1, {});
  gpu()->copy(0, 0, device->data(), host->data(), 4_KiB);
  const Call doubling = sum(device->data(), device->data(), device->data(), 1024);
  gpu()->run(1, 0, doubling);
  gpu()->copy(2, 0, host->data() + 4096, device->data(), 4_KiB);
  gpu()->record(0, 0);
  gpu()->synchronize(0);
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(numbers[1024 + i], static_cast<float>(2 * i));
  EXPECT_EQ(gpu()->finish().size(), 3u);
}

TEST_F(CudaBackend, TheWorkspaceIsCounted) {
  gpu()->begin_step(1, 0, {});
  gpu()->finish();
  EXPECT_GE(gpu()->workspace(), 4_MiB);  // at least cuBLASLt's
}

// A broken call breaks the whole process's GPU, so it gets a process of its own.
TEST_F(CudaBackend, AnErrorInTheMiddleOfAStepIsToldAndNothingHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto break_it = [] {
    try {
      const auto backend = load_cuda_backend(plugin_of_tests());
      auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{4096});
      const Call call = sum(nowhere, nowhere, nowhere, 1024);
      backend->begin_step(2, 1, {});
      backend->run(7, 0, call);
      backend->record(0, 0);
      backend->wait(1, 0);
      backend->finish();
    } catch (const InputError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(break_it(), testing::ExitedWithCode(7), "cudaErrorIllegalAddress");
}

}  // namespace
}  // namespace tidemark::backend_test
