// The thread of one stream.
#include "kernels/cpu/stream.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "base/error.h"

namespace tidemark::cpu {

Stream::Stream(Kernel run, Failure& failure)
    : run_(run), failure_(failure), thread_([this] { work(); }) {}

Stream::~Stream() {
  issue({.last = true});
  thread_.join();
}

void Stream::begin_step(Clock::time_point start, const StepState& state) {
  CHECK(done_.value() == issued_count_);
  start_ = start;
  workspace_.state = state;
}

void Stream::issue(const StreamTask& task) {
  if (issued_count_ >= capacity) done_.await(issued_count_ + 1 - capacity);
  queue_[issued_count_ % capacity] = task;
  issued_.advance_to(++issued_count_);
}

void Stream::work() {
  for (std::uint64_t next = 0;; ++next) {
    issued_.await(next + 1);
    const StreamTask& task = queue_[next % capacity];
    if (task.last) return;
    if (!failure_.any()) perform(task);
    done_.advance_to(next + 1);
  }
}

void Stream::perform(const StreamTask& task) try {
  if (task.ran != nullptr) {
    run_timed(task);
  } else {
    cpu::await(task.place);
  }
} catch (const std::bad_alloc&) {
  failure_.set(std::make_exception_ptr(
      InputError(fmt::format("step {}: no memory left for a kernel's scratch; choose a smaller "
                             "batch, or free memory",
                             task.ran->step))));
} catch (...) {
  failure_.set(std::current_exception());
}

void Stream::run_timed(const StreamTask& task) {
  task.ran->begin = Clock::now() - start_;
  if (task.call != nullptr) {
    run_(*task.call, workspace_);
  } else {
    std::memcpy(task.to, task.from, task.size);
  }
  task.ran->end = Clock::now() - start_;
}

}  // namespace tidemark::cpu
