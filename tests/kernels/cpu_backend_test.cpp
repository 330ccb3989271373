// The CPU backend: order, events, faults. The kernels here are the tests' own.
#include "kernels/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <bitset>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "base/error.h"
#include "kernels/cpu/memory.h"

namespace tidemark::cpu_backend_test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using namespace literals;

/// A call that runs a function of the test: its address travels as the data of the first input.
void run_function(const Call& call, cpu::Workspace& workspace) {
  (*elements<std::function<void(cpu::Workspace&)>>(call.inputs[0]))(workspace);
}

class CpuBackendTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_cpu_backend({.run = run_function});

  /// Calls live until finish(), as the backend asks.
  const Call& call(std::function<void(cpu::Workspace&)> function) {
    functions_.push_back(std::move(function));
    Call& made = calls_.emplace_back();
    made.inputs.emplace_back().data = reinterpret_cast<std::byte*>(&functions_.back());
    return made;
  }

  std::deque<std::function<void(cpu::Workspace&)>> functions_;
  std::deque<Call> calls_;
};

TEST_F(CpuBackendTest, AStreamRunsItsCallsInTheOrderOfIssue) {
  std::vector<int> order;  // one stream writes it: the thread sanitizer would tell if it were two
  backend_->begin_step(1, 0, {});
  for (int i = 0; i < 5000; ++i) {  // more than the queue holds
    backend_->run(0, 0, call([&order, i](cpu::Workspace&) { order.push_back(i); }));
  }
  EXPECT_EQ(backend_->finish().size(), 5000u);
  ASSERT_EQ(order.size(), 5000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(CpuBackendTest, WhatWaitsForAnEventSeesWhatWasDoneBeforeIt) {
  int value = 0;
  backend_->begin_step(2, 1, {});
  backend_->run(0, 0, call([&](cpu::Workspace&) {
                  std::this_thread::sleep_for(5ms);  // longer than anybody spins
                  value = 42;
                }));
  backend_->record(0, 0);
  backend_->wait(1, 0);
  int seen = 0;
  backend_->run(1, 1, call([&](cpu::Workspace&) { seen = value; }));
  backend_->finish();
  EXPECT_EQ(seen, 42);
}

TEST_F(CpuBackendTest, AWaitMeansTheLastRecordBeforeItAndNoLaterOne) {
  std::atomic<bool> release = false;
  std::vector<int> order;
  backend_->begin_step(2, 1, {});
  backend_->run(0, 0, call([&](cpu::Workspace&) { order.push_back(0); }));
  backend_->record(0, 0);
  backend_->wait(1, 0);
  backend_->run(1, 1, call([&](cpu::Workspace&) { order.push_back(1), release = true; }));
  backend_->run(2, 0, call([&](cpu::Workspace&) {
                  while (!release)
                    std::this_thread::yield();  // hangs if stream 1 waited for what follows
                  order.push_back(2);
                }));
  backend_->record(0, 0);  // the same event again, behind the call that needs stream 1
  backend_->finish();
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST_F(CpuBackendTest, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  backend_->begin_step(2, 2, {});
  backend_->wait(1, 1);
  backend_->synchronize(1);
  bool ran = false;
  backend_->run(0, 1, call([&](cpu::Workspace&) { ran = true; }));
  backend_->finish();
  EXPECT_TRUE(ran);
}

TEST_F(CpuBackendTest, StreamsRunAtTheSameTime) {
  std::atomic<int> arrived = 0;
  const auto meet = [&](cpu::Workspace&) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  };
  backend_->begin_step(3, 0, {});
  for (std::size_t stream = 0; stream < 3; ++stream) backend_->run(0, stream, call(meet));
  const std::vector<Ran> ran = backend_->finish();
  ASSERT_EQ(ran.size(), 3u);
  for (const Ran& a : ran) {
    for (const Ran& b : ran) EXPECT_LT(a.begin, b.end);
  }
}

TEST_F(CpuBackendTest, TheHostWaitsForTheEventAndNotForMore) {
  std::atomic<bool> first = false, second = false;
  backend_->begin_step(1, 1, {});
  backend_->run(0, 0, call([&](cpu::Workspace&) {
                  std::this_thread::sleep_for(2ms);
                  first = true;
                }));
  backend_->record(0, 0);
  backend_->run(1, 0, call([&](cpu::Workspace&) {
                  while (!second) std::this_thread::yield();
                }));
  backend_->synchronize(0);
  EXPECT_TRUE(first);
  second = true;  // never reached if synchronize() had waited for the second call
  backend_->finish();
}

TEST_F(CpuBackendTest, RanTellsStepStreamAndTimesInTheOrderOfIssue) {
  std::array<std::byte, 64> from{}, to{};
  from[7] = std::byte{9};
  backend_->begin_step(2, 0, {});
  backend_->run(11, 1, call([](cpu::Workspace&) { std::this_thread::sleep_for(3ms); }));
  backend_->copy(12, 0, to.data(), from.data(), 64_B);
  const std::vector<Ran> ran = backend_->finish();
  ASSERT_EQ(ran.size(), 2u);
  EXPECT_EQ(ran[0].step, 11u);
  EXPECT_EQ(ran[0].stream, 1);
  EXPECT_GE(ran[0].begin, 0ns);
  EXPECT_GE(ran[0].end - ran[0].begin, 3ms);
  EXPECT_EQ(ran[1].step, 12u);
  EXPECT_EQ(ran[1].stream, 0);
  EXPECT_EQ(to, from);
}

TEST_F(CpuBackendTest, EachStepHasItsStateItsClockAndKeepsTheScratch) {
  std::vector<std::int64_t> numbers;
  std::vector<float*> scratch;
  for (std::int64_t step = 0; step < 3; ++step) {
    backend_->begin_step(1, 0, {.number = step});
    backend_->run(0, 0, call([&](cpu::Workspace& workspace) {
                    numbers.push_back(workspace.state.number);
                    scratch.push_back(workspace.floats(1000).data());
                  }));
    EXPECT_LT(backend_->finish().front().begin, 1s);
  }
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(scratch[0], scratch[2]);
  EXPECT_EQ(backend_->workspace(), 4000_B);
}

TEST_F(CpuBackendTest, AFailureStopsAllStreamsAndComesOutOfFinish) {
  std::atomic<int> after = 0;
  backend_->begin_step(2, 1, {});
  backend_->run(3, 0, call([](cpu::Workspace&) { throw InputError("step 3: a bad number"); }));
  backend_->record(0, 0);
  backend_->wait(1, 0);
  for (int i = 0; i < 3000; ++i) {
    backend_->run(4, 1, call([&](cpu::Workspace&) { ++after; }));
    backend_->run(4, 0, call([&](cpu::Workspace&) { ++after; }));
  }
  backend_->synchronize(0);
  try {
    backend_->finish();
    FAIL() << "the failure was lost";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "step 3: a bad number");
  }
  EXPECT_EQ(after, 0);
  EXPECT_THROW(backend_->begin_step(1, 0, {}), InputError);  // and it stays so
}

TEST_F(CpuBackendTest, TheFirstFailureIsTheOneThatIsTold) {
  backend_->begin_step(1, 0, {});
  for (const char* text : {"first", "second"}) {
    backend_->run(0, 0, call([text](cpu::Workspace&) { throw InputError(text); }));
  }
  try {
    backend_->finish();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST_F(CpuBackendTest, AKernelWithoutMemoryForItsScratchSaysWhichStep) {
  backend_->begin_step(1, 0, {});
  backend_->run(17, 0, call([](cpu::Workspace&) { throw std::bad_alloc(); }));
  try {
    backend_->finish();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 17: no memory left"));
  }
}

TEST_F(CpuBackendTest, ABackendGivenUpInTheMiddleOfAStepEnds) {
  std::atomic<int> ran = 0;
  backend_->begin_step(3, 1, {});
  for (int i = 0; i < 300; ++i) {
    const std::size_t stream = static_cast<std::size_t>(i % 3);
    backend_->wait(stream, 0);
    backend_->run(0, stream, call([&](cpu::Workspace&) {
                    ++ran;
                    std::this_thread::sleep_for(1ms);
                  }));
    backend_->record(stream, 0);
  }
  backend_.reset();  // 300 ms if it all ran
  EXPECT_LT(ran, 300);
}

/// Steps with random waits; each call checks that what it depends on has run, and nothing that
/// is behind it in its stream.
class Graph {
 public:
  using Nodes = std::bitset<64>;  // more than a step has

  Graph(Backend& backend, std::mt19937& random) : backend_(backend), random_(random) {}

  void play() {
    const std::size_t streams = 1 + random_() % 4, events = 1 + random_() % 5;
    const std::size_t count = 1 + random_() % 60;
    done_ = std::vector<std::atomic<bool>>(count);
    std::vector<Nodes> before_stream(streams), before_event(events);
    backend_.begin_step(streams, events, {});
    for (std::size_t node = 0; node < count;) {
      const std::size_t stream = random_() % streams, event = random_() % events;
      Nodes& before = before_stream[stream];
      switch (random_() % 4) {
        case 0:
          backend_.record(stream, event), before_event[event] = before;
          break;
        case 1:
          backend_.wait(stream, event), before |= before_event[event];
          break;
        default:
          issue(stream, node, before), before.set(node++);
      }
      if (random_() % 50 == 0) synchronize(event, before_event[event]);
    }
    EXPECT_EQ(backend_.finish().size(), count);
    for (const auto& done : done_) EXPECT_TRUE(done);
  }

  int out_of_order() const { return out_of_order_; }

 private:
  void issue(std::size_t stream, std::size_t node, Nodes before) {
    const int pause = random_() % 8 == 0 ? static_cast<int>(random_() % 60) : 0;
    functions_.push_back([this, node, pause, before](cpu::Workspace&) {
      for (std::size_t other = 0; other < done_.size(); ++other) {
        if (before[other] && !done_[other].load(std::memory_order_relaxed)) ++out_of_order_;
      }
      if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
      if (done_[node].exchange(true, std::memory_order_relaxed)) ++out_of_order_;
    });
    Call& call = calls_.emplace_back();
    call.inputs.emplace_back().data = reinterpret_cast<std::byte*>(&functions_.back());
    backend_.run(static_cast<std::uint32_t>(node), stream, call);
  }
  void synchronize(std::size_t event, Nodes before) {
    backend_.synchronize(event);
    for (std::size_t node = 0; node < done_.size(); ++node)
      EXPECT_TRUE(!before[node] || done_[node]);
  }

  Backend& backend_;
  std::mt19937& random_;
  std::deque<std::function<void(cpu::Workspace&)>> functions_;
  std::deque<Call> calls_;
  std::vector<std::atomic<bool>> done_;
  std::atomic<int> out_of_order_ = 0;
};

TEST_F(CpuBackendTest, ThousandsOfRandomStepsKeepTheOrderOfTheirEvents) {
  std::mt19937 random(20240711);
  for (int step = 0; step < 3000; ++step) {
    Graph graph(*backend_, random);
    graph.play();
    ASSERT_EQ(graph.out_of_order(), 0) << "step " << step;
  }
}

TEST_F(CpuBackendTest, MemoryIsZeroAndAsLargeAsAsked) {
  const std::unique_ptr<Memory> memory = backend_->allocate(1_MiB, MemoryKind::Device);
  EXPECT_EQ(memory->size(), 1_MiB);
  const std::vector<std::byte> zeros(1 << 20);
  EXPECT_TRUE(std::equal(zeros.begin(), zeros.end(), memory->data()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 4096, 0u);
  EXPECT_NE(backend_->allocate(0_B, MemoryKind::Host)->data(), nullptr);
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

TEST_F(CpuBackendTest, MemoryIsTakenFromTheMachineWhenItIsTouched) {
  const std::int64_t before = resident_bytes();
  const std::unique_ptr<Memory> memory = backend_->allocate(256_MiB, MemoryKind::Device);
  EXPECT_LT(resident_bytes() - before, 16 << 20);
}

TEST_F(CpuBackendTest, MoreMemoryThanTheMachineHasIsRefusedWithTheReason) {
  const Bytes all = backend_->capacity();
  EXPECT_GT(all, 64_MiB);
  try {
    backend_->allocate(all + 1_GiB, MemoryKind::Device);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot allocate " + to_text(all + 1_GiB)));
    EXPECT_THAT(error.what(), HasSubstr("can be had here"));
  }
}

TEST_F(CpuBackendTest, UntouchedBlocksCountUntilTheyAreFreed) {
  const Bytes half{cpu::available_memory()->size.count / 10 * 6};
  std::unique_ptr<Memory> first = backend_->allocate(half, MemoryKind::Device);
  EXPECT_THROW(backend_->allocate(half, MemoryKind::Device), InputError);
  first.reset();
  EXPECT_NO_THROW(backend_->allocate(half, MemoryKind::Device));
}

TEST_F(CpuBackendTest, TheLimitOfTheAddressSpaceIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space";
#endif
  const auto allocate_below_the_limit = [&] {
    const rlimit limit{.rlim_cur = 1 << 30, .rlim_max = 1 << 30};
    setrlimit(RLIMIT_AS, &limit);
    try {
      backend_->allocate(1_GiB, MemoryKind::Device);
    } catch (const InputError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(allocate_below_the_limit(), testing::ExitedWithCode(7),
              "the process may address 1.00 GiB \\(ulimit -v\\)");
}

TEST(CpuBackend, AnyAllocationCanBeMadeToFail) {
  for (std::size_t failing = 1; failing <= 3; ++failing) {
    const auto backend = make_cpu_backend({.run = run_function, .failing_allocation = failing});
    for (std::size_t i = 1; i <= 4; ++i) {
      if (i == failing) {
        EXPECT_THROW(backend->allocate(1_MiB, MemoryKind::Device), InputError);
      } else {
        EXPECT_NO_THROW(backend->allocate(1_MiB, MemoryKind::Device));
      }
    }
  }
}

TEST_F(CpuBackendTest, SaysWhatItRunsOn) {
  EXPECT_EQ(backend_->name(), "cpu");
  EXPECT_THAT(backend_->description(),
              HasSubstr(std::to_string(std::thread::hardware_concurrency()) + " cores"));
  EXPECT_THAT(backend_->description(), HasSubstr(to_text(backend_->capacity())));
}

TEST_F(CpuBackendTest, UploadAndDownloadAreCopies) {
  const std::unique_ptr<Memory> memory = backend_->allocate(64_B, MemoryKind::Device);
  const std::array<int, 4> sent{1, 2, 3, 4};
  std::array<int, 4> received{};
  backend_->upload(memory->data() + 16, sent.data(), 16_B);
  backend_->download(received.data(), memory->data() + 16, 16_B);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace tidemark::cpu_backend_test
