// What measuring makes of a backend's answers: of one that calls itself a device, whose memory is
// nowhere and whose times are made up.
#include <gmock/gmock.h>

#include <algorithm>

#include "profiler/calibrate.h"

namespace tidemark::profiler::measure_device_test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class MadeUpMemory final : public Memory {
 public:
  explicit MadeUpMemory(Bytes size) : size_(size) {}
  std::byte* data() const override { return reinterpret_cast<std::byte*>(std::uintptr_t{4096}); }
  Bytes size() const override { return size_; }

 private:
  Bytes size_;
};

/// A nanosecond per KiB of a call's first output, or of a copy; four of a linear's in rows of an
/// odd number of elements.
class MadeUpDevice final : public Backend {
 public:
  std::string name() const override { return "made-up"; }
  Ground ground() const override { return Ground::Device; }
  std::string description() const override { return "made up"; }
  Bytes capacity() const override { return {std::int64_t{1} << 40}; }
  Bytes workspace() const override { return {}; }
  std::unique_ptr<Memory> allocate(Bytes size, MemoryKind) override {
    return std::make_unique<MadeUpMemory>(size);
  }
  void begin_step(std::size_t, std::size_t, const StepState&) override { ran_.clear(); }
  void run(std::uint32_t step, std::size_t stream, const Call& call) override {
    largest = std::max(largest, numel(call.outputs[0].shape) * size_of(call.outputs[0].dtype));
    const Shape& made = call.outputs[0].shape;
    const bool is_odd = call.kind == OpKind::Linear && made.back() % 2 != 0;
    add(step, stream, (is_odd ? 4 : 1) * numel(made) * size_of(call.outputs[0].dtype));
  }
  void copy(std::uint32_t step, std::size_t stream, std::byte*, const std::byte*,
            Bytes size) override {
    add(step, stream, 8 * size.count);  // the link is slower
  }
  void record(std::size_t, std::size_t) override {}
  void wait(std::size_t, std::size_t) override {}
  void synchronize(std::size_t) override {}
  std::vector<Ran> finish() override { return ran_; }
  void upload(std::byte*, const void* from, Bytes size) override {
    const auto* const bytes = static_cast<const std::byte*>(from);
    are_numbers &=
        std::any_of(bytes, bytes + size.count, [](std::byte b) { return b != std::byte{0}; });
  }
  void download(void*, const std::byte*, Bytes) override {}

  std::int64_t largest = 0;
  bool are_numbers = true;

 private:
  void add(std::uint32_t step, std::size_t stream, std::int64_t bytes) {
    ran_.push_back({step, static_cast<std::uint8_t>(stream), 0ns,
                    Nanoseconds{std::max<std::int64_t>(bytes >> 10, 1)}});
  }
  std::vector<Ran> ran_;
};

TEST(MeasureDevice, ADeviceIsMeasuredBeyondItsCacheAndOverItsLink) {
  MadeUpDevice backend;
  const Device device = measure_device(backend);
  EXPECT_GT(backend.largest, std::int64_t{256} << 20);        // several times any cache
  EXPECT_TRUE(backend.are_numbers);                           // zeros are multiplied faster
  EXPECT_DOUBLE_EQ(device.bytes_per_second, 2 * 1024 * 1e9);  // read and written
  EXPECT_DOUBLE_EQ(device.host_link_bytes_per_second, 1024 * 1e9 / 8);
  EXPECT_THAT(device.sources.at("host_link_bytes_per_second").text, HasSubstr("pinned"));
  // 64 · 8 heads of 512 × 64: 32 MiB, so 32768 ns in either pass; the product's 32 MiB likewise.
  const double attention = 14.0 * 64 * 8 * 512 * 512 * 64 / 65536,
               product = 2.0 * 4096 * 4096 * 4096 / 32768;
  EXPECT_NEAR(*device.attention_efficiency, attention / product, 1e-9);
  // Rows of 4094 and 4095 numbers beside 4096.
  EXPECT_NEAR(*device.even_rows_gemm_share, 1, 1e-3);
  EXPECT_NEAR(*device.odd_rows_gemm_share, 0.25, 1e-3);
}

}  // namespace
}  // namespace tidemark::profiler::measure_device_test
