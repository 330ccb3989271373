// One kernel on the toy device: its time, and the shares of SMs and memory that it leaves to
// others.
#include "simulator/cost/kernel_cost.h"

#include <gtest/gtest.h>

#include "tests/simulator/cost/toy_device.h"

namespace tidemark::kernel_cost_test {
namespace {

// 1000 FLOP and 250 B take 1000 ns and 250 ns; a gap of 250 ns belongs to nobody.
TEST(KernelCosts, ArithmeticThatTakesLongerHoldsTheSms) {
  Device device = toy_device();
  const auto cost = [&] {
    return KernelCosts(device, Precision::Fp32).with_flops(1000, DType::Float32, 250, 512, 1);
  };
  EXPECT_EQ(cost().time, Nanoseconds{1000});
  EXPECT_DOUBLE_EQ(cost().sm_share, 1);
  EXPECT_DOUBLE_EQ(cost().memory_share, 0.25);
  EXPECT_DOUBLE_EQ(cost().flops, 1000);
  EXPECT_DOUBLE_EQ(cost().bytes, 250);
  device.kernel_gap = Nanoseconds{250};
  EXPECT_EQ(cost().time, Nanoseconds{1250});
  EXPECT_DOUBLE_EQ(cost().sm_share, 0.8);
  EXPECT_DOUBLE_EQ(cost().memory_share, 0.2);
}

// 100 FLOP while 400 B are moved: a quarter of the SMs' time. A block of 512 elements alone would
// have held one of 32 places.
TEST(KernelCosts, ArithmeticThatTakesLessNeedsItsPart) {
  Device device = toy_device();
  const auto cost = [&](double flops) {
    return KernelCosts(device, Precision::Fp32).with_flops(flops, DType::Float32, 400, 512, 1);
  };
  EXPECT_EQ(cost(100).time, Nanoseconds{400});
  EXPECT_DOUBLE_EQ(cost(100).sm_share, 0.25);
  EXPECT_DOUBLE_EQ(cost(100).memory_share, 1);
  EXPECT_DOUBLE_EQ(cost(1).sm_share, 1.0 / 32);
  EXPECT_DOUBLE_EQ(cost(400).sm_share, 1);  // both at once
  device.kernel_gap = Nanoseconds{400};
  EXPECT_EQ(cost(100).time, Nanoseconds{800});
  EXPECT_DOUBLE_EQ(cost(100).sm_share, 0.125);
  EXPECT_DOUBLE_EQ(cost(100).memory_share, 0.5);
}

TEST(KernelCosts, NoKernelCostsNothing) {
  const Device device = toy_device();
  const KernelCosts kernels(device, Precision::Fp32);
  EXPECT_EQ(kernels.elementwise(400, 512, 0).time, Nanoseconds{});
  EXPECT_EQ(kernels.with_flops(100, DType::Float32, 400, 512, 0).time, Nanoseconds{});
  EXPECT_DOUBLE_EQ(kernels.with_flops(0, DType::Float32, 400, 512, 1).flops, 0);
}

// A block has 32 × 16 threads with two rows of two fp32 tensors in flight, 8192 B in all, which it
// moves once in 290 cycles; a block of its own has every 32 columns, and one SM every block.
TEST(KernelCosts, ASumByColumnsMovesWhatItsBlocksHaveInFlight) {
  Device device = toy_device();
  device.bytes_per_second = 1e12;  // 1000 B/ns, which two blocks do not reach
  const auto cost = [&](double columns) {
    return KernelCosts(device, Precision::Fp32).sum_by_columns(81920, columns);
  };
  const double one = 8192.0 / 290;  // B/ns
  for (const double columns : {1.0, 32.0}) {
    EXPECT_EQ(cost(columns).time, Nanoseconds{2900});
    EXPECT_DOUBLE_EQ(cost(columns).sm_share, 0.5);
    EXPECT_DOUBLE_EQ(cost(columns).memory_share, one / 1000);
  }
  for (const double columns : {33.0, 64.0, 65.0, 1e6}) {
    EXPECT_EQ(cost(columns).time, Nanoseconds{1450}) << columns;
    EXPECT_DOUBLE_EQ(cost(columns).sm_share, 1);
    EXPECT_DOUBLE_EQ(cost(columns).memory_share, 2 * one / 1000);
  }
  device.kernel_gap = Nanoseconds{1450};
  EXPECT_EQ(cost(64).time, Nanoseconds{2900});
  EXPECT_DOUBLE_EQ(cost(64).sm_share, 0.5);
  EXPECT_DOUBLE_EQ(cost(64).memory_share, one / 1000);
}

// Where the memory is slower than that, it is what the kernel waits for.
TEST(KernelCosts, ASumByColumnsIsNoFasterThanMemory) {
  const Device device = toy_device();
  const Cost cost = KernelCosts(device, Precision::Fp32).sum_by_columns(4000, 64);
  EXPECT_EQ(cost.time, Nanoseconds{4000});
  EXPECT_DOUBLE_EQ(cost.memory_share, 1);
}

}  // namespace
}  // namespace tidemark::kernel_cost_test
