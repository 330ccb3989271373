// A counter that only grows, and threads that wait until it is far enough.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace tidemark::cpu {

/// Written by one thread, awaited by any number. A task of some microseconds must not cost a sleep
/// and a wake-up, which take tens of microseconds together: so a waiter spins for a moment first,
/// and the writer makes a system call only when somebody sleeps who wants this very value.
class Progress {
 public:
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }

  void advance_to(std::uint64_t value) {
    // Sequentially consistent, as is the reader's side: either the writer sees the sleeper's wish,
    // or the sleeper sees the value.
    value_.store(value);
    if (value < wanted_.load()) return;
    const std::lock_guard lock(mutex_);
    wanted_ = nobody;  // whoever wants a later value asks again
    changed_.notify_all();
  }

  void await(std::uint64_t value) {
    for (int spin = 0; spin < spins; ++spin) {
      if (value_.load(std::memory_order_acquire) >= value) return;
      relax();
    }
    std::unique_lock lock(mutex_);
    for (;;) {
      if (value < wanted_.load()) wanted_ = value;
      if (value_.load() >= value) return;
      changed_.wait(lock);
    }
  }

 private:
  static constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();
  /// About as long as the sleep and the wake-up that it may save: 500 times 40 to 140 cycles.
  static constexpr int spins = 500;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<std::uint64_t> value_ = 0;
  std::atomic<std::uint64_t> wanted_ = nobody;  ///< the lowest value that a sleeper waits for
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace tidemark::cpu
