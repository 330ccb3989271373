// A stream of the CPU backend: a thread that works off a queue, in order.
//
// An event needs no object of its own: it is a place in a stream, "stream 1 has done its first 17
// tasks". Recording it again names another place, and who waits for the old one is not confused.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "kernels/backend.h"
#include "kernels/cpu/progress.h"
#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

/// The first failure of any stream; from then on all of them let their tasks pass without doing
/// them, so that nobody waits for ever.
class Failure {
 public:
  bool any() const { return any_.load(std::memory_order_acquire); }
  void set(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    any_.store(true, std::memory_order_release);
  }
  void rethrow() const {
    if (any()) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

class Stream;

/// "That stream has done so many tasks." Without a stream it is always reached.
struct Place {
  Stream* stream = nullptr;
  std::uint64_t tasks = 0;
};

/// One of: a call, a copy, a wait for a place, the end of the thread.
struct StreamTask {
  const Call* call = nullptr;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size = 0;
  Place place{};
  Ran* ran = nullptr;  ///< of calls and copies: where the times go
  bool last = false;
};

class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  Stream(Kernel run, Failure& failure);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Only between steps, when all tasks are done.
  void begin_step(Clock::time_point start, const StepState& state);
  /// Waits only if the queue is full.
  void issue(const StreamTask& task);
  /// Behind everything issued so far.
  Place here() { return {this, issued_count_}; }
  void await(std::uint64_t tasks) { done_.await(tasks); }

  const Workspace& workspace() const { return workspace_; }

 private:
  void work();
  void perform(const StreamTask& task);
  void run_timed(const StreamTask& task);

  // Whole training steps of small models fit; a full queue only makes the host wait. That cannot
  // block for ever, because tasks wait only for places that were issued before them.
  static constexpr std::size_t capacity = 1024;
  std::array<StreamTask, capacity> queue_;
  std::uint64_t issued_count_ = 0;  ///< the host's own copy
  Progress issued_, done_;
  Kernel run_;
  Failure& failure_;
  Workspace workspace_;
  Clock::time_point start_;
  std::thread thread_;  ///< last: it uses all the others
};

inline void await(Place place) {
  if (place.stream != nullptr) place.stream->await(place.tasks);
}

}  // namespace tidemark::cpu
