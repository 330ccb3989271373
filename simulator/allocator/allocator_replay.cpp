// Replays what is there before a step and then two steps: the second meets a warm cache.
#include "simulator/allocator/allocator_replay.h"

#include <algorithm>
#include <span>

#include "base/units.h"
#include "simulator/allocator/caching_allocator.h"
#include "simulator/cost/scratch.h"

namespace tidemark::allocator {
namespace {

using Kind = AllocatorCall::Kind;

class Replay {
 public:
  Replay(const AllocatorCalls& calls, const AllocatorSettings& settings, Bytes capacity)
      : allocator_(settings, capacity), streams_(calls.streams), handles_(calls.slots, no_block) {}

  /// False at the first call that is out of memory.
  bool run(std::span<const AllocatorCall> calls) {
    for (const AllocatorCall& call : calls) {
      const auto stream = static_cast<std::uint32_t>(call.stream);
      switch (call.kind) {
        case Kind::Allocate: {
          const auto handle = allocator_.allocate(call.size, stream);
          if (!handle) return false;
          handles_[call.slot] = *handle;
          break;
        }
        case Kind::Free:
          allocator_.free(handles_[call.slot]);
          break;
        case Kind::RecordStream:
          allocator_.record_stream(handles_[call.slot], stream);
          break;
        case Kind::CompleteEvents:
          complete_events();
          break;
      }
    }
    return true;
  }

  const AllocatorStats& stats() const { return allocator_.stats(); }

 private:
  void complete_events() {
    for (std::size_t s = 0; s < streams_; ++s)
      allocator_.complete_events(static_cast<std::uint32_t>(s));
  }

  CachingAllocator allocator_;
  std::size_t streams_;
  std::vector<BlockHandle> handles_;  // by slot
};

}  // namespace

AllocatorResult replay_allocator(const AllocatorCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity) {
  Replay replay(calls, settings, capacity);
  bool fits = replay.run(calls.before);
  const std::span<const AllocatorCall> step = calls.step;
  Bytes at_rest;
  for (int i = 0; fits && i < 2; ++i) {
    fits = replay.run(step.first(calls.work));
    at_rest = replay.stats().allocated;
    fits = fits && replay.run(step.subspan(calls.work));
  }
  const AllocatorStats& stats = replay.stats();
  return {.allocated_peak = stats.allocated_peak,
          .reserved_peak = stats.reserved_peak,
          .allocated_at_rest = at_rest,
          .retries = stats.retries,
          .out_of_memory = !fits};
}

AllocatorResult replay_allocator(const Trace& trace, const Schedule& schedule,
                                 const Framework& framework, const Device& device,
                                 const AllocatorSettings& settings, Bytes capacity) {
  return replay_allocator(calls_of(trace, schedule, framework, device), settings, capacity);
}

Bytes requested_peak(const Schedule& schedule, const Framework& framework, const Device& device) {
  constexpr std::int64_t unit = 512;  // no block is smaller, whatever the settings
  const auto rounded = [](Bytes size) { return Bytes{round_up(size.count, unit)}; };
  Bytes now;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent) now += rounded(buffer.size);
  now += Bytes{rounded(blas_workspace(framework, device)).count *
               static_cast<std::int64_t>(workspaces(schedule, framework).size())};
  Bytes most = now;
  for (const Step& step : schedule.steps) {
    if (const auto* a = std::get_if<Allocate>(&step)) {
      now += rounded(schedule[a->buffer].size);
      most = std::max(most, now);
    } else if (const auto* f = std::get_if<Free>(&step)) {
      now -= rounded(schedule[f->buffer].size);
    }
  }
  return most;
}

Bytes workspaces_of_one_stream(const Framework& framework, const Device& device) {
  if (!framework.blas_workspace_in_pool || framework.blas_workspace_per_call) return {};
  const std::int64_t handles = framework.blas_handle_per_thread ? 2 : 1;
  return {handles * round_up(blas_workspace(framework, device).count, 512)};
}

}  // namespace tidemark::allocator
