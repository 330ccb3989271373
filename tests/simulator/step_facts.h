// What the tests count in schedules, by the plainest walk over their steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/schedule.h"

namespace tidemark {

inline Bytes persistent_bytes(const Schedule& schedule) {
  Bytes sum;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent) sum += buffer.size;
  return sum;
}

/// Bytes that are present after each step, in issue order.
inline std::vector<Bytes> live_bytes(const Schedule& schedule) {
  std::vector<Bytes> live;
  Bytes now = persistent_bytes(schedule);
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step)) now += schedule[s->buffer].size;
    if (const auto* s = std::get_if<Free>(&step)) now -= schedule[s->buffer].size;
    live.push_back(now);
  }
  return live;
}

inline Bytes live_peak(const Schedule& schedule) {
  Bytes peak = persistent_bytes(schedule);
  for (const Bytes bytes : live_bytes(schedule)) peak = std::max(peak, bytes);
  return peak;
}

/// The same of sizes as PyTorch's allocator rounds them, to 512 bytes.
inline std::int64_t rounded_live_peak(const Schedule& schedule) {
  const auto rounded_of = [&](BufferId id) { return (schedule[id].size.count + 511) / 512 * 512; };
  std::int64_t now = 0;
  for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
    if (schedule.buffers[b].persistent) now += rounded_of(static_cast<BufferId>(b));
  std::int64_t peak = now;
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step))
      peak = std::max(peak, now += rounded_of(s->buffer));
    if (const auto* s = std::get_if<Free>(&step)) now -= rounded_of(s->buffer);
  }
  return peak;
}

inline std::vector<Run> runs_of(const Schedule& schedule) {
  std::vector<Run> runs;
  for (const Step& step : schedule.steps)
    if (const auto* run = std::get_if<Run>(&step)) runs.push_back(*run);
  return runs;
}

inline std::int64_t count_runs(const Schedule& schedule, Task task) {
  return std::ranges::count(runs_of(schedule), task, &Run::task);
}

template <typename Kind>
std::int64_t count_steps(const Schedule& schedule) {
  return std::ranges::count_if(schedule.steps,
                               [](const Step& step) { return std::holds_alternative<Kind>(step); });
}

}  // namespace tidemark
