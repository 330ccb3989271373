// The emulation itself: it runs CUDA's ways of working together, and notices what breaks them.
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "tests/emulation/cuda.h"

namespace tidemark::emulation_test {
namespace {

using emulation::Order;
constexpr std::array orders = {Order::Forward, Order::Backward, Order::Shuffled};

/// The text of the error that running the kernel gives.
template <typename Kernel>
std::string error_of(dim3 blocks, dim3 threads, const Kernel& kernel) {
  try {
    emulation::run("of the test", blocks, threads, 1024, kernel);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Emulation, EveryThreadOfTheGridRunsOnce) {
  for (const Order order : orders) {
    emulation::run_in(order);
    std::vector<int> ran(2 * 3 * 4 * 5);
    emulation::run("count", dim3(2, 3), dim3(4, 5), 0, [&] {
      const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
      ++ran[block * 20 + threadIdx.y * blockDim.x + threadIdx.x];
    });
    EXPECT_EQ(ran, std::vector<int>(2 * 3 * 4 * 5, 1));
  }
}

// Thread i writes, thread i + 1 reads; 100 threads, each sees its neighbour in every order.
void rotate(int* out, bool has_barrier) {
  TIDEMARK_SHARED(int, shared);
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (has_barrier) __syncthreads();
  out[threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

TEST(Emulation, BarriersLetThreadsSeeEachOther) {
  std::vector<int> wanted(100), got(100);
  for (int i = 0; i < 100; ++i) wanted[static_cast<std::size_t>(i)] = (i + 1) % 100;
  for (const Order order : orders) {
    emulation::run_in(order);
    emulation::run("rotate", dim3(1), dim3(100), 400, [&] { rotate(got.data(), true); });
    EXPECT_EQ(got, wanted);
  }
}

TEST(Emulation, AMissingBarrierShowsInEveryOrder) {
  std::vector<int> wanted(100), got(100);
  for (int i = 0; i < 100; ++i) wanted[static_cast<std::size_t>(i)] = (i + 1) % 100;
  std::vector<std::vector<int>> results;
  for (const Order order : orders) {
    emulation::run_in(order);
    emulation::run("rotate", dim3(1), dim3(100), 400, [&] { rotate(got.data(), false); });
    EXPECT_NE(got, wanted);
    results.push_back(got);
  }
  EXPECT_NE(results[0], results[1]);  // what the comparison between orders is for
}

TEST(Emulation, AThreadThatLeavesBeforeTheBarrierIsAnError) {
  const std::string error = error_of(dim3(1), dim3(64), [] {
    if (threadIdx.x == 7) return;
    __syncthreads();
  });
  EXPECT_NE(error.find("never come"), std::string::npos) << error;
}

TEST(Emulation, DifferentBarriersAreAnError) {
  const std::string error = error_of(dim3(1), dim3(64), [] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  EXPECT_NE(error.find("different barriers"), std::string::npos) << error;
}

TEST(Emulation, AShuffleThatMissesALaneIsAnError) {
  const std::string error = error_of(dim3(1), dim3(64), [] {
    if (threadIdx.x == 40) return;
    __shfl_xor_sync(0xffffffffu, 1, 16);
  });
  EXPECT_NE(error.find("never come"), std::string::npos) << error;
}

TEST(Emulation, ItRunsOnAfterAnError) {
  error_of(dim3(1), dim3(64), [] {
    if (threadIdx.x == 7) throw std::runtime_error("by hand");
    __syncthreads();
  });
  int sum = 0;
  emulation::run("count", dim3(1), dim3(64), 0, [&] { ++sum; });
  EXPECT_EQ(sum, 64);
}

TEST(Emulation, ShufflesGiveTheValueOfTheOtherLane) {
  for (const Order order : orders) {
    emulation::run_in(order);
    std::vector<unsigned> down(64), across(64), from(64);
    emulation::run("shuffle", dim3(1), dim3(64), 0, [&] {
      const unsigned i = threadIdx.x;
      down[i] = __shfl_down_sync(0xffffffffu, i, 3);
      across[i] = __shfl_xor_sync(0xffffffffu, i, 5);
      from[i] = __shfl_sync(0xffffffffu, i, 9);
    });
    for (unsigned i = 0; i < 64; ++i) {
      EXPECT_EQ(down[i], i % 32 + 3 < 32 ? i + 3 : i);
      EXPECT_EQ(across[i], i ^ 5u);
      EXPECT_EQ(from[i], i / 32 * 32 + 9);
    }
  }
}

// One slow warp must not read what a fast one has written two shuffles later.
TEST(Emulation, ManyShufflesInARowKeepTheirRounds) {
  for (const Order order : orders) {
    emulation::run_in(order);
    std::vector<int> sums(256);
    emulation::run("sum", dim3(1), dim3(256), 0, [&] {
      int sum = static_cast<int>(threadIdx.x % 32);
      for (int round = 0; round < 50; ++round)
        sum = __shfl_sync(0xffffffffu, sum, (static_cast<int>(threadIdx.x) + 1) % 32);
      sums[threadIdx.x] = sum;
    });
    for (int i = 0; i < 256; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], (i + 50) % 32);
  }
}

TEST(Emulation, SharedMemoryBeginsAsGarbage) {
  float first = 0;
  emulation::run("read", dim3(1), dim3(1), 4, [&] {
    TIDEMARK_SHARED(float, shared);
    first = shared[0];
  });
  EXPECT_TRUE(std::isnan(first));
}

TEST(Emulation, AtomicsAddUp) {
  int count = 0;
  emulation::run("count", dim3(4), dim3(64), 0, [&] { atomicAdd(&count, 2); });
  EXPECT_EQ(count, 512);
}

TEST(Emulation, LimitsOfTheHardwareAreErrors) {
  EXPECT_NE(error_of(dim3(1), dim3(2048), [] {}).find("2048 threads"), std::string::npos);
  EXPECT_NE(error_of(dim3(1, 70000), dim3(32), [] {}).find("too many blocks"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::emulation_test
