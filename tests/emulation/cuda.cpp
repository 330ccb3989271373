// The scheduler of the emulation: fibers, barriers, shuffles.
#include "tests/emulation/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/emulation/fiber.h"

namespace tidemark::emulation {
namespace {

std::string text(dim3 at) { return fmt::format("({}, {}, {})", at.x, at.y, at.z); }

dim3 nth(std::size_t i, dim3 size) {
  const auto n = static_cast<unsigned>(i);
  return {n % size.x, n / size.x % size.y, n / size.x / size.y};
}

constexpr std::size_t warp = 32;

/// A thread of the block that runs, and what it waits for.
struct Thread {
  std::size_t number = 0;
  Position position;
  bool is_done = false;
  const tidemark::emulation::Place* waits_at = nullptr;
};

/// The lanes of a warp at a shuffle. A lane can be one shuffle ahead of the slowest, not two: so
/// two sets of words are enough.
struct Warp {
  std::size_t arrived = 0, generation = 0;
  std::uint64_t words[2][warp] = {};
  std::vector<Thread*> waiting;
};

class Machine;
Machine* machine = nullptr;
std::vector<std::unique_ptr<Fiber>> idle;  // kept from kernel to kernel

/// Runs the blocks of one kernel.
class Machine {
 public:
  Machine(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes, Order order,
          const std::function<void()>& body)
      : kernel_(kernel), grid_(blocks), block_(threads), order_(order), body_(body) {
    shared_.resize(shared_bytes);
    const std::size_t count = std::size_t{threads.x} * threads.y * threads.z;
    if (count == 0 || count > 1024) fail(fmt::format("{} threads in a block", count));
    // What a block may ask for on devices of capability 7.5, the oldest that kernels are built for.
    if (shared_bytes > 64 * 1024) fail(fmt::format("{} bytes of shared memory", shared_bytes));
    if (blocks.y > 65535 || blocks.z > 65535) fail("too many blocks along y or z");
    threads_.resize(count);
  }

  void run() {
    const std::size_t count = std::size_t{grid_.x} * grid_.y * grid_.z;
    for (const std::size_t i : sequence(count)) run_block(nth(i, grid_));
  }

  Thread& current() { return *current_; }
  std::byte* shared() { return shared_.data(); }

  void block_barrier(const tidemark::emulation::Place& where) {
    for (const Thread* other : at_barrier_)
      if (other->waits_at->line() != where.line())
        fail(fmt::format("threads {} and {} wait at different barriers: lines {} and {}",
                         text(other->position.thread), text(current_->position.thread),
                         other->waits_at->line(), where.line()));
    if (at_barrier_.size() + 1 < threads_.size()) return park(at_barrier_, where);
    release(at_barrier_);
  }

  std::uint64_t exchange(unsigned mask, std::uint64_t word, unsigned from,
                         const tidemark::emulation::Place& where) {
    if (mask != 0xffffffffu) fail("a shuffle of a part of a warp");
    Warp& own = warps_[current_->number / warp];
    const std::size_t lane = current_->number % warp, generation = own.generation;
    own.words[generation % 2][lane] = word;
    if (++own.arrived == warp) {
      own.arrived = 0, ++own.generation;
      release(own.waiting);
    } else {
      park(own.waiting, where);
    }
    return own.words[generation % 2][from];
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(fmt::format("kernel {}: {}", kernel_, why));
  }

 private:
  std::vector<std::size_t> sequence(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (order_ == Order::Backward) std::reverse(order.begin(), order.end());
    if (order_ == Order::Shuffled) std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  void run_block(dim3 block) {
    std::fill(shared_.begin(), shared_.end(), std::byte{0xff});  // NaN in all float formats
    warps_.assign((threads_.size() + warp - 1) / warp, Warp());
    for (std::size_t i = 0; i < threads_.size(); ++i)
      threads_[i] = {i, {nth(i, block_), block, block_, grid_}, false, nullptr};
    starts_ = sequence(threads_.size());
    next_ = 0;
    for (;;) {
      if (!ready_.empty()) {
        resume_one();
      } else if (next_ < starts_.size()) {
        start_one();
      } else {
        break;
      }
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }
    for (const Thread& thread : threads_)
      if (!thread.is_done)
        fail(fmt::format("thread {} of block {} waits at line {} for threads that never come",
                         text(thread.position.thread), text(block), thread.waits_at->line()));
  }

  // A fiber runs threads one after the other until one of them must wait: kernels without barriers
  // never change stacks.
  void start_one() {
    if (idle.empty()) idle.push_back(std::make_unique<Fiber>([] { machine->run_threads(); }));
    running_ = std::move(idle.back());
    idle.pop_back();
    change();
  }

 public:
  void run_threads() {
    while (next_ < starts_.size()) {
      Thread& thread = threads_[starts_[next_++]];
      current_ = &thread;
      try {
        body_();
      } catch (...) {
        error_ = std::current_exception();
      }
      thread.is_done = true;
      if (error_) return;
    }
  }

 private:
  void resume_one() {
    std::size_t i = 0;
    if (order_ == Order::Backward) i = ready_.size() - 1;
    if (order_ == Order::Shuffled) i = random_() % ready_.size();
    Thread* thread = ready_[i];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
    current_ = thread;
    running_ = std::move(fibers_[thread->number]);
    change();
  }

  void change() {
    parked_ = nullptr;
    running_->resume();
    if (parked_ != nullptr)
      fibers_[parked_->number] = std::move(running_);
    else
      idle.push_back(std::move(running_));
  }

  void park(std::vector<Thread*>& waiting, const tidemark::emulation::Place& where) {
    Thread* const self = current_;
    self->waits_at = &where;
    waiting.push_back(self);
    parked_ = self;
    running_->suspend();
    current_ = self;
  }

  void release(std::vector<Thread*>& waiting) {
    ready_.insert(ready_.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }

  const char* kernel_;
  dim3 grid_, block_;
  Order order_;
  const std::function<void()>& body_;
  std::vector<std::byte> shared_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::size_t> starts_;
  std::size_t next_ = 0;
  std::deque<Thread*> ready_;
  std::vector<Thread*> at_barrier_;
  Thread* current_ = nullptr;
  Thread* parked_ = nullptr;
  std::unique_ptr<Fiber> running_;
  std::array<std::unique_ptr<Fiber>, 1024> fibers_;  ///< of parked threads
  std::exception_ptr error_;
  std::mt19937 random_{404};
};

Order order = Order::Forward;
std::size_t kernels = 0;

}  // namespace

void run_in(Order wanted) { order = wanted; }
std::size_t kernels_run() { return kernels; }

void run(const char* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
         const std::function<void()>& body) {
  ++kernels;
  Machine own(kernel, blocks, threads, shared_bytes, order, body);
  machine = &own;
  own.run();
}

const Position& position() { return machine->current().position; }
std::byte* dynamic_shared() { return machine->shared(); }
void trap() { machine->fail("trap"); }
unsigned lane() { return static_cast<unsigned>(machine->current().number % warp); }
void block_barrier(const tidemark::emulation::Place& where) { machine->block_barrier(where); }
std::uint64_t exchange(unsigned mask, std::uint64_t word, unsigned from,
                       const tidemark::emulation::Place& where) {
  return machine->exchange(mask, word, from, where);
}

}  // namespace tidemark::emulation

void __trap() { tidemark::emulation::trap(); }
