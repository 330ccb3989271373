// Items are done once each, at once where there are cores; the lowest one's exception is carried.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace tidemark::parallel_test {
namespace {

TEST(ParallelFor, DoesEveryItemOnce) {
  for (const std::size_t count : {0u, 1u, 2u, 3u, 1000u}) {
    std::vector<int> done(count, 0);  // one element per item: nothing is shared
    parallel_for(count, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(done, std::vector<int>(count, 1));
  }
}

TEST(ParallelFor, ReturnsWhenAllIsDone) {
  std::atomic<int> done = 0;
  parallel_for(8, [&](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++done;
  });
  EXPECT_EQ(done, 8);
}

// Two items that wait for each other can only end if they run at once.
TEST(ParallelFor, RunsItemsAtOnceWhereThereAreCores) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  std::atomic<int> here = 0;
  parallel_for(2, [&](std::size_t) {
    ++here;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (here < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    EXPECT_EQ(here, 2);
  });
}

// Threads within threads would be as many as the square of the cores.
TEST(ParallelFor, WithinItselfTakesTheThreadThatItHas) {
  parallel_for(4, [](std::size_t) {
    const std::thread::id here = std::this_thread::get_id();
    int done = 0;  // not atomic: one thread alone counts
    parallel_for(100, [&](std::size_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++done;
    });
    EXPECT_EQ(done, 100);
  });
}

// The higher item fails at once, the lowest late: still the lowest is what the caller hears of.
TEST(ParallelFor, CarriesTheExceptionOfTheLowestItem) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      parallel_for(100, [](std::size_t i) {
        if (i == 10) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (i >= 10) throw InputError("item " + std::to_string(i));
      });
      FAIL() << "no exception";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "item 10");
    }
  }
}

TEST(ParallelFor, BeginsNoItemsAfterAFailure) {
  std::atomic<int> begun = 0;
  EXPECT_THROW(parallel_for(100'000,
                            [&](std::size_t) {
                              ++begun;
                              throw std::runtime_error("at once");
                            }),
               std::runtime_error);
  // Each thread can have begun one item before it saw that another failed.
  EXPECT_LE(begun, static_cast<int>(std::thread::hardware_concurrency()) + 1);
}

TEST(ParallelFor, KeepsTheKindOfTheException) {
  EXPECT_THROW(parallel_for(4, [](std::size_t) { throw UsageError("wrong"); }), UsageError);
  EXPECT_THROW(parallel_for(4, [](std::size_t) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(ParallelFor, MayBeNested) {
  std::vector<std::size_t> sums(4);
  parallel_for(sums.size(), [&](std::size_t i) {
    std::vector<std::size_t> parts(10);
    parallel_for(parts.size(), [&](std::size_t j) { parts[j] = i * j; });
    sums[i] = std::accumulate(parts.begin(), parts.end(), std::size_t{0});
  });
  EXPECT_EQ(sums, (std::vector<std::size_t>{0, 45, 90, 135}));
}

}  // namespace
}  // namespace tidemark::parallel_test
