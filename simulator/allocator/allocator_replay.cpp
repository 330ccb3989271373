// Replays persistent buffers, BLAS workspaces and two steps: the second meets a warm cache.
#include "simulator/allocator/allocator_replay.h"

#include <algorithm>

namespace tidemark::allocator {
namespace {

using namespace literals;

// CUBLAS_WORKSPACE_CONFIG's default, as PyTorch allocates it: 4096·1024·2 + 16·1024·8 bytes, and
// 32 MiB on compute capability 9.0.
Bytes blas_workspace(const Device& device) {
  return device.compute_capability == "9.0" ? 32_MiB : Bytes{8'519'680};
}

class Replay {
 public:
  Replay(const Schedule& schedule, const AllocatorSettings& settings, Bytes capacity)
      : schedule_(schedule), allocator_(settings, capacity) {
    handles_.assign(schedule.buffers.size(), no_block);
    if (schedule.streams > 1) mark_foreign_streams();
  }

  bool place(Bytes bytes, StreamId stream) {
    return allocator_.allocate(bytes, number(stream)).has_value();
  }

  bool place_persistent() {
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b)
      if (schedule_.buffers[b].persistent && !allocate(static_cast<BufferId>(b))) return false;
    return true;
  }

  bool step() {
    for (const Step& step : schedule_.steps) {
      if (const auto* a = std::get_if<Allocate>(&step)) {
        if (!allocate(a->buffer)) return false;
      } else if (const auto* f = std::get_if<Free>(&step)) {
        free(f->buffer);
      } else if (std::holds_alternative<Synchronize>(step)) {
        complete_events();
      }
    }
    complete_events();
    return true;
  }

  const AllocatorStats& stats() const { return allocator_.stats(); }

 private:
  using ForeignUse = std::pair<BufferId, StreamId>;  // a stream other than the buffer's own

  static std::uint32_t number(StreamId stream) { return static_cast<std::uint32_t>(stream); }

  // Neighbouring operands are often the same, so few uses are noted twice before they are sorted.
  void mark_foreign_streams() {
    std::vector<StreamId> last(schedule_.buffers.size());  // noted; the buffer's own says nothing
    for (std::size_t b = 0; b < last.size(); ++b) last[b] = schedule_.buffers[b].stream;
    for (const Step& step : schedule_.steps) {
      const auto* run = std::get_if<Run>(&step);
      if (!run) continue;
      const std::span operands =
          std::span(schedule_.operands).subspan(run->first_operand, run->reads + run->writes);
      for (const BufferId b : operands)
        if (schedule_[b].stream != run->stream && last[index(b)] != run->stream)
          foreign_.emplace_back(b, last[index(b)] = run->stream);
    }
    std::ranges::sort(foreign_);
    foreign_.erase(std::unique(foreign_.begin(), foreign_.end()), foreign_.end());
  }

  bool allocate(BufferId b) {
    const Buffer& buffer = schedule_[b];
    const auto handle = allocator_.allocate(buffer.size, number(buffer.stream));
    if (!handle) return false;
    handles_[index(b)] = *handle;
    return true;
  }

  void free(BufferId b) {
    const auto first = std::ranges::lower_bound(foreign_, b, {}, &ForeignUse::first);
    for (auto use = first; use != foreign_.end() && use->first == b; ++use)
      allocator_.record_stream(handles_[index(b)], number(use->second));
    allocator_.free(handles_[index(b)]);
  }

  void complete_events() {
    for (std::size_t s = 0; s < schedule_.streams; ++s)
      allocator_.complete_events(static_cast<std::uint32_t>(s));
  }

  const Schedule& schedule_;
  CachingAllocator allocator_;
  std::vector<BlockHandle> handles_;
  std::vector<ForeignUse> foreign_;  // sorted
};

// Streams that only copy ask no library for its workspace.
std::vector<StreamId> computing_streams(const Schedule& schedule) {
  std::vector<bool> computes(schedule.streams);
  computes[index(StreamId::Compute)] = true;
  for (const Step& step : schedule.steps)
    if (const auto* run = std::get_if<Run>(&step)) computes[index(run->stream)] = true;
  std::vector<StreamId> streams;
  for (std::size_t s = 0; s < computes.size(); ++s)
    if (computes[s]) streams.push_back(static_cast<StreamId>(s));
  return streams;
}

}  // namespace

AllocatorResult replay_allocator(const Schedule& schedule, const Framework& framework,
                                 const Device& device, const AllocatorSettings& settings,
                                 Bytes capacity) {
  Replay replay(schedule, settings, capacity);
  bool fits = replay.place_persistent();
  if (framework.blas_workspace_in_pool)
    for (const StreamId stream : computing_streams(schedule))
      fits = fits && replay.place(blas_workspace(device), stream);
  for (int step = 0; fits && step < 2; ++step) fits = replay.step();
  return {replay.stats().allocated_peak, replay.stats().reserved_peak, replay.stats().retries,
          !fits};
}

Bytes requested_peak(const Schedule& schedule, const Framework& framework, const Device& device) {
  constexpr std::int64_t unit = 512;  // no block is smaller, whatever the settings
  const auto rounded = [](Bytes size) { return Bytes{(size.count + unit - 1) / unit * unit}; };
  Bytes now;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent) now += rounded(buffer.size);
  if (framework.blas_workspace_in_pool)
    now += Bytes{rounded(blas_workspace(device)).count *
                 static_cast<std::int64_t>(computing_streams(schedule).size())};
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

}  // namespace tidemark::allocator
