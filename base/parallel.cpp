// Threads take items from one counter; of several exceptions that of the lowest item is thrown.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tidemark {
namespace {

/// This thread does an item already: what that one hands out finds all cores busy.
thread_local bool is_taking_part = false;

/// What the threads share. Items are handed out in order, so when item i throws, every item below
/// it has begun already and will tell its own exception: the lowest one always wins.
class Work {
 public:
  Work(std::size_t count, const std::function<void(std::size_t)>& work)
      : count_(count), work_(work), lowest_(count) {}

  void take_part() {
    const bool before = std::exchange(is_taking_part, true);
    take_items();
    is_taking_part = before;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void take_items() {
    // Not looked at after an item is taken: that one must run, or the promise is broken.
    while (!stopped_) {
      const std::size_t i = next_++;
      if (i >= count_) return;
      run(i);
    }
  }

  void run(std::size_t i) {
    try {
      work_(i);
    } catch (...) {
      stopped_ = true;
      const std::lock_guard lock(mutex_);
      if (i >= lowest_) return;
      lowest_ = i;
      error_ = std::current_exception();
    }
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::size_t lowest_;  // guarded by mutex_, like error_
  std::exception_ptr error_;
};

}  // namespace

std::size_t core_count() { return std::max<std::size_t>(1, std::thread::hardware_concurrency()); }

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work) {
  Work shared(count, work);
  const std::size_t threads = is_taking_part ? 1 : std::min(count, core_count());
  std::vector<std::jthread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) others.emplace_back([&shared] { shared.take_part(); });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
  shared.take_part();
  others.clear();  // joins
  shared.rethrow();
}

}  // namespace tidemark
