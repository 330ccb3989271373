// Walks the schedule once: buffers keep their numbers as slots, and scratch takes those behind.
#include "simulator/allocator/allocator_calls.h"

#include <algorithm>
#include <utility>

#include "simulator/cost/scratch.h"

namespace tidemark::allocator {
namespace {

using namespace literals;
using Kind = AllocatorCall::Kind;

class Listing {
 public:
  Listing(const Trace& trace, const Schedule& schedule, const Device& device)
      : trace_(trace), schedule_(schedule), device_(device), slots_(schedule.buffers.size()) {
    calls_.streams = schedule.streams;
    calls_.step.reserve(schedule.steps.size());
    if (schedule.streams > 1) find_foreign_uses();
  }

  void add_persistent() {
    Bytes joined;
    const bool joins = joins_parameters();
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      if (!schedule_.buffers[b].persistent) continue;
      if (joins && lies_beside_others(schedule_.buffers[b]))
        joined += schedule_.buffers[b].size;
      else
        calls_.before.push_back(allocation(static_cast<BufferId>(b)));
    }
    if (joined > Bytes{}) add_workspace(joined, StreamId::Compute);
  }

  void add_workspace(Bytes size, StreamId stream) {
    calls_.before.push_back({size, static_cast<std::uint32_t>(slots_++), stream, Kind::Allocate});
  }

  void add_step(bool has_scratch) {
    for (const Step& step : schedule_.steps) {
      if (const auto* a = std::get_if<Allocate>(&step)) {
        calls_.step.push_back(allocation(a->buffer));
      } else if (const auto* f = std::get_if<Free>(&step)) {
        add_free(f->buffer);
      } else if (const auto* run = std::get_if<Run>(&step)) {
        if (has_scratch) add_scratch(scratch_of(trace_, schedule_, *run, device_), run->stream);
        calls_.work = calls_.step.size();
      } else if (std::holds_alternative<Synchronize>(step)) {
        calls_.step.push_back({.kind = Kind::CompleteEvents});
      }
    }
    calls_.step.push_back({.kind = Kind::CompleteEvents});
  }

  AllocatorCalls finish() && {
    calls_.slots = slots_ + most_scratch_;
    return std::move(calls_);
  }

 private:
  // Parameters of Megatron-LM's distributed optimizer and DeepSpeed's are parts of one buffer.
  bool joins_parameters() const {
    const std::optional<Sharding> sharing = sharing_of(trace_.step);
    if (!sharing) return false;
    return is_zero(sharing->kind) ||
           (sharing->kind == Sharding::Kind::Megatron && sharing->cuts_states);
  }

  bool lies_beside_others(const Buffer& buffer) const {
    return buffer.category == Category::Parameter &&
           (buffer.role == Role::Temporary || trace_[buffer.tensor].trainable);
  }

  // A stream other than the buffer's own that uses it, and the next such stream.
  struct ForeignUse {
    StreamId stream;
    std::uint32_t next;
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  void find_foreign_uses() {
    first_foreign_.assign(schedule_.buffers.size(), none);
    for (const Step& step : schedule_.steps)
      if (const auto* run = std::get_if<Run>(&step))
        for (const BufferId b : schedule_.operands_of(*run)) note_use(b, run->stream);
  }

  // By rising stream. What stays is never freed, so nobody asks who uses it.
  void note_use(BufferId b, StreamId stream) {
    const Buffer& buffer = schedule_[b];
    if (buffer.stream == stream || buffer.persistent) return;
    if (buffer.category == Category::Communication) return;  // who reuses it waits for an event
    std::uint32_t* place = &first_foreign_[index(b)];
    while (*place != none && foreign_[*place].stream < stream) place = &foreign_[*place].next;
    if (*place != none && foreign_[*place].stream == stream) return;
    const std::uint32_t next = std::exchange(*place, static_cast<std::uint32_t>(foreign_.size()));
    foreign_.push_back({stream, next});
  }

  AllocatorCall allocation(BufferId b) const {
    const Buffer& buffer = schedule_[b];
    return {buffer.size, static_cast<std::uint32_t>(b), buffer.stream, Kind::Allocate};
  }

  void add_free(BufferId b) {
    const auto slot = static_cast<std::uint32_t>(b);
    if (!first_foreign_.empty())
      for (std::uint32_t use = first_foreign_[index(b)]; use != none; use = foreign_[use].next)
        calls_.step.push_back({{}, slot, foreign_[use].stream, Kind::RecordStream});
    calls_.step.push_back({{}, slot, schedule_[b].stream, Kind::Free});
  }

  void add_scratch(const Scratch& scratch, StreamId stream) {
    const std::span<const Bytes> requests = scratch.requests();
    const auto slot = [&](std::size_t i) { return static_cast<std::uint32_t>(slots_ + i); };
    most_scratch_ = std::max(most_scratch_, requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      calls_.step.push_back({requests[i], slot(i), stream, Kind::Allocate});
    for (std::size_t i = 0; i < requests.size(); ++i)
      calls_.step.push_back({{}, slot(i), stream, Kind::Free});
  }

  const Trace& trace_;
  const Schedule& schedule_;
  const Device& device_;
  AllocatorCalls calls_;
  std::size_t slots_, most_scratch_ = 0;
  std::vector<std::uint32_t> first_foreign_;  // by buffer; empty with one stream
  std::vector<ForeignUse> foreign_;
};

bool asks_for_blas(Task task) {
  return task != Task::Pack && task != Task::Accumulate && !is_collective(task);
}

// Streams that only copy or communicate ask no library for its workspace.
std::vector<StreamId> computing_streams(const Schedule& schedule) {
  std::vector<std::uint8_t> computes(schedule.streams);
  computes[index(StreamId::Compute)] = true;
  if (schedule.streams > 1)
    for (const Step& step : schedule.steps)
      if (const auto* run = std::get_if<Run>(&step))
        computes[index(run->stream)] = computes[index(run->stream)] || asks_for_blas(run->task);
  std::vector<StreamId> streams;
  for (std::size_t s = 0; s < computes.size(); ++s)
    if (computes[s]) streams.push_back(static_cast<StreamId>(s));
  return streams;
}

}  // namespace

std::vector<StreamId> workspaces(const Schedule& schedule, const Framework& framework) {
  if (!framework.blas_workspace_in_pool || framework.blas_workspace_per_call) return {};
  std::vector<StreamId> streams = computing_streams(schedule);
  if (framework.blas_handle_per_thread) streams.insert(streams.begin(), StreamId::Compute);
  return streams;
}

AllocatorCalls calls_of(const Trace& trace, const Schedule& schedule, const Framework& framework,
                        const Device& device) {
  Listing listing(trace, schedule, device);
  listing.add_persistent();
  for (const StreamId stream : workspaces(schedule, framework))
    listing.add_workspace(blas_workspace(framework, device), stream);
  for (const Bytes kept : {engine_workspace(framework, device), score_buffer(trace)})
    if (kept > Bytes{}) listing.add_workspace(kept, StreamId::Compute);
  listing.add_step(framework.op_scratch);
  return std::move(listing).finish();
}

}  // namespace tidemark::allocator
