// Replays persistent buffers, BLAS workspaces and two steps: the second meets a warm cache.
#include "simulator/allocator/allocator_replay.h"

#include <algorithm>

#include "simulator/cost/scratch.h"

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
  Replay(const Trace& trace, const Schedule& schedule, const Device& device,
         const AllocatorSettings& settings, Bytes capacity)
      : trace_(trace), schedule_(schedule), device_(device), allocator_(settings, capacity) {
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

  void use_scratch() { has_scratch_ = true; }

  bool step() {
    for (const Step& step : schedule_.steps) {
      if (const auto* a = std::get_if<Allocate>(&step)) {
        if (!allocate(a->buffer)) return false;
      } else if (const auto* f = std::get_if<Free>(&step)) {
        free(f->buffer);
      } else if (const auto* run = std::get_if<Run>(&step)) {
        if (has_scratch_ && !pass_scratch(*run)) return false;
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

  // Taken while the run is issued; the next one of its stream may have it again.
  bool pass_scratch(const Run& run) {
    const Scratch scratch = scratch_of(trace_, schedule_, run, device_);
    scratch_.clear();
    for (const Bytes request : scratch.requests()) {
      const auto handle = allocator_.allocate(request, number(run.stream));
      if (!handle) return false;
      scratch_.push_back(*handle);
    }
    for (const BlockHandle handle : scratch_) allocator_.free(handle);
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

  const Trace& trace_;
  const Schedule& schedule_;
  const Device& device_;
  CachingAllocator allocator_;
  bool has_scratch_ = false;
  std::vector<BlockHandle> scratch_;
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

// One per handle and stream. The main stream has work of both threads: of the program's, and of the
// one that runs the backward.
std::vector<StreamId> workspaces(const Schedule& schedule, const Framework& framework) {
  std::vector<StreamId> streams = computing_streams(schedule);
  if (framework.blas_handle_per_thread) streams.insert(streams.begin(), StreamId::Compute);
  return streams;
}

}  // namespace

AllocatorResult replay_allocator(const Trace& trace, const Schedule& schedule,
                                 const Framework& framework, const Device& device,
                                 const AllocatorSettings& settings, Bytes capacity) {
  Replay replay(trace, schedule, device, settings, capacity);
  if (framework.op_scratch) replay.use_scratch();
  bool fits = replay.place_persistent();
  if (framework.blas_workspace_in_pool)
    for (const StreamId stream : workspaces(schedule, framework))
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

}  // namespace tidemark::allocator
