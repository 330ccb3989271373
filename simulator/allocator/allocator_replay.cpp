// Replays what is there before a step and then steps: the second meets a warm cache.
#include "simulator/allocator/allocator_replay.h"

#include <algorithm>
#include <span>

#include "base/units.h"
#include "simulator/allocator/call_player.h"
#include "simulator/cost/scratch.h"

namespace tidemark::allocator {
namespace {

// False at the first call that is out of memory.
bool play(std::span<const AllocatorCall> calls, CallPlayer& player) {
  return std::ranges::all_of(
      calls, [&](const AllocatorCall& call) { return player.play(call, call.slot); });
}

// `at`: the place of the first of the calls in the step.
bool play(std::span<const AllocatorCall> calls, std::size_t at, FirstCalls& first,
          CallPlayer& player) {
  return std::ranges::all_of(calls, [&](const AllocatorCall& call) {
    return play(first.before(at++), player) && player.play(call, call.slot);
  });
}

}  // namespace

AllocatorResult replay_allocator(const AllocatorCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity) {
  CallPlayer player(settings, capacity, calls.streams, calls.slots);
  const AllocatorStats& stats = player.allocator().stats();
  FirstCalls first(calls.before, calls.made_at);
  bool fits = play(first.there(), player);
  const std::span<const AllocatorCall> step = calls.step;
  Bytes at_rest;
  player.forget_peak();
  for (int i = 0; fits && i < calls.times; ++i) {
    fits = play(step.first(calls.work), 0, first, player);
    at_rest = stats.allocated;
    fits = fits && play(step.subspan(calls.work), calls.work, first, player);
  }
  return result_of(stats, at_rest, fits);
}

AllocatorResult result_of(const AllocatorStats& stats, Bytes at_rest, bool fits) {
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
