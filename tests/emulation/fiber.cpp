// Changes stacks in assembly on x86-64 and by ucontext elsewhere, and tells sanitizers about it.
#include "tests/emulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <stdexcept>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

// gcc defines the macros, clang has the features.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDEMARK_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define TIDEMARK_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TIDEMARK_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define TIDEMARK_TSAN
#endif
#if defined(TIDEMARK_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TIDEMARK_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tidemark::emulation {

/// A stack that is left: where it goes on, and what sanitizers know of it.
struct Side {
#if defined(__x86_64__)
  void* top = nullptr;
#else
  ucontext_t context{};
#endif
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
  void* sanitizer_fiber = nullptr;
};

struct Fiber::State {
  std::function<void()> body;
  void* stack = nullptr;
  Side host, own;
};

namespace {

// Frames are larger under a sanitizer. Only touched pages take memory.
constexpr std::size_t stack_size = 256 * 1024;

}  // namespace
}  // namespace tidemark::emulation

#if defined(__x86_64__)
// Saves what the calling convention says a function keeps, then goes on where the other stack
// stopped.
extern "C" void tidemark_change_stack(void** save, void* load);
asm(R"(
.text
.globl tidemark_change_stack
.type tidemark_change_stack, @function
tidemark_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tidemark_change_stack, .-tidemark_change_stack
)");
#endif

namespace tidemark::emulation {
namespace {

void change(Side& from, Side& to) {
#if defined(TIDEMARK_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
#if defined(TIDEMARK_TSAN)
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
#endif
#if defined(__x86_64__)
  tidemark_change_stack(&from.top, to.top);
#else
  swapcontext(&from.context, &to.context);
#endif
#if defined(TIDEMARK_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

Fiber::State* entering = nullptr;  // a new stack starts without arguments

[[noreturn]] void enter() {
  Fiber::State& state = *entering;
#if defined(TIDEMARK_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &state.host.bottom, &state.host.size);
#endif
  for (;;) {
    state.body();
    change(state.own, state.host);
  }
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : state_(new State) {
  state_->body = std::move(body);
  state_->stack = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (state_->stack == MAP_FAILED) {
    delete state_;
    throw std::runtime_error("no memory for a fiber's stack");
  }
  Side& own = state_->own;
  own.bottom = state_->stack;
  own.size = stack_size;
#if defined(TIDEMARK_TSAN)
  own.sanitizer_fiber = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
  // As if enter() had been called: six registers to restore, then its address, at a stack that is
  // 8 beyond a multiple of 16.
  auto* words = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(state_->stack) + stack_size);
  words[-1] = 0;
  words[-2] = reinterpret_cast<std::uintptr_t>(&enter);
  for (int i = -8; i < -2; ++i) words[i] = 0;
  own.top = words - 8;
#else
  getcontext(&own.context);
  own.context.uc_stack.ss_sp = state_->stack;
  own.context.uc_stack.ss_size = stack_size;
  makecontext(&own.context, enter, 0);
#endif
}

Fiber::~Fiber() {
#if defined(TIDEMARK_TSAN)
  __tsan_destroy_fiber(state_->own.sanitizer_fiber);
#endif
#if defined(TIDEMARK_ASAN)
  // A fiber that never returned leaves its frames' red zones behind.
  __asan_unpoison_memory_region(state_->stack, stack_size);
#endif
  munmap(state_->stack, stack_size);
  delete state_;
}

void Fiber::resume() {
  entering = state_;
#if defined(TIDEMARK_TSAN)
  state_->host.sanitizer_fiber = __tsan_get_current_fiber();
#endif
  change(state_->host, state_->own);
}

void Fiber::suspend() { change(state_->own, state_->host); }

}  // namespace tidemark::emulation
