// Walks the schedule once: buffers keep their numbers as slots, and scratch takes those behind.
#include "simulator/allocator/allocator_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/cost/scratch.h"
#include "traces/optimizer_of.h"

namespace tidemark::allocator {
namespace {

using namespace literals;
using Kind = AllocatorCall::Kind;

// Who holds a handle of cuBLAS: the thread of the program, and the one that runs the backward.
enum Thread : std::uint8_t { Program, Engine };

bool multiplies(const Trace& trace, OpId id) {
  if (id == no_op) return false;
  const OpaqueRow* row = opaque_row(trace, trace[id]);
  if (row) return row->forward.flops.has_value();
  return trace[id].kind == OpKind::Linear || trace[id].kind == OpKind::MatMul;
}

bool is_of_backward(Task task) {
  return task == Task::Seed || task == Task::Backward || task == Task::WeightGradient;
}

class Listing {
 public:
  Listing(const Trace& trace, const Schedule& schedule, const Device& device)
      : trace_(trace),
        schedule_(schedule),
        device_(device),
        slots_(schedule.buffers.size()),
        is_made_later_(schedule.buffers.size()) {
    calls_.streams = schedule.streams;
    calls_.step.reserve(schedule.steps.size());
    if (schedule.streams > 1) find_foreign_uses();
  }

  void add_persistent() {
    Bytes joined;
    const bool joins = joins_parameters();
    if (!cuts_states() && (is_step_of_one() || makes_copies_first())) find_states();
    if (!is_step_of_one()) begin_with_states();
    calls_.state_slots = slots_ - schedule_.buffers.size();
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      if (!schedule_.buffers[b].persistent || is_made_later_[b]) continue;
      if (joins && lies_beside_others(schedule_.buffers[b]))
        joined += schedule_.buffers[b].size;
      else
        calls_.before.push_back(allocation(static_cast<BufferId>(b)));
    }
    if (joined > Bytes{}) add_workspace(joined, StreamId::Compute);
    calls_.before.insert(calls_.before.end(), copies_.begin(), copies_.end());
  }

  void add_workspace(Bytes size, StreamId stream) {
    calls_.before.push_back({size, static_cast<std::uint32_t>(slots_++), stream, Kind::Allocate});
  }

  /// Each chunk of a stage of Megatron-LM names what it received last until it gets another, and so
  /// between steps, with its gradient: set_input_tensor() of core/transformer/transformer_block.py,
  /// backward_step() of core/pipeline_parallel/schedules.py, whose retain_grad() leaves that there.
  /// Meanwhile its loop names the gradient that it has made last, so that one is always there.
  void add_named_inputs() {
    constexpr int value_and_gradient = 2;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      if (trace_.ops[i].kind != OpKind::Receive) continue;
      for (int n = 0; n < value_and_gradient; ++n) {
        add_workspace(size(trace_[trace_.outputs(trace_.ops[i])[0]]), StreamId::Compute);
        named_.push_back({static_cast<OpId>(i), calls_.before.back()});
      }
    }
    if (!named_.empty()) named_.pop_back();
  }

  /// By thread; the second one's only if it has a handle of its own.
  void add_blas_workspaces(Bytes size, std::size_t threads) {
    for (std::size_t t = 0; t < threads; ++t)
      blas_.push_back(AllocatorCall{size, static_cast<std::uint32_t>(slots_++), StreamId::Compute,
                                    Kind::Allocate});
  }

  void add_step(bool has_scratch) {
    for (const Step& step : schedule_.steps) {
      if (const auto* a = std::get_if<Allocate>(&step)) {
        calls_.step.push_back(allocation(a->buffer));
        continue;
      } else if (const auto* f = std::get_if<Free>(&step)) {
        add_free(f->buffer);
      } else if (const auto* run = std::get_if<Run>(&step)) {
        add_what_stays(*run);
        free_named_inputs(*run);
        if (has_scratch) add_scratch(scratch_of(trace_, schedule_, *run, device_), run->stream);
        calls_.work = calls_.step.size();
      } else if (std::holds_alternative<Synchronize>(step)) {
        calls_.step.push_back({.kind = Kind::CompleteEvents});
      } else {
        continue;
      }
      next_run_ = calls_.step.size();
    }
    calls_.step.push_back({.kind = Kind::CompleteEvents});
    name_inputs_again();
  }

  AllocatorCalls finish() && {
    for (const std::optional<AllocatorCall>& workspace : blas_)
      if (workspace) calls_.before.push_back(*workspace);
    calls_.before.insert(calls_.before.end(), made_.begin(), made_.end());
    calls_.slots = slots_ + most_scratch_;
    return std::move(calls_);
  }

 private:
  struct NamedInput {
    OpId receive;
    AllocatorCall allocation;
    bool is_there = true;
  };

  void free_named_inputs(const Run& run) {
    if (run.task != Task::Forward) return;
    for (NamedInput& named : named_)
      if (named.receive == run.op && std::exchange(named.is_there, false))
        calls_.step.push_back({{}, named.allocation.slot, named.allocation.stream, Kind::Free});
  }

  // Behind the last run.
  void name_inputs_again() {
    std::vector<AllocatorCall> again;
    for (const NamedInput& named : named_)
      if (!named.is_there) again.push_back(named.allocation);
    calls_.step.insert(calls_.step.begin() + static_cast<std::ptrdiff_t>(calls_.work),
                       again.begin(), again.end());
    calls_.work += again.size();
  }

  // --- what stays, and is made by the first step ---

  struct State {
    BufferId buffer;
    AllocatorCall call;
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  // Megatron-LM's distributed optimizer and DeepSpeed's make states with themselves.
  bool cuts_states() const {
    const std::optional<Sharding> sharing = sharing_of(trace_.step);
    return sharing && (is_zero(sharing->kind) || is_distributed_optimizer(*sharing));
  }

  static bool is_distributed_optimizer(const Sharding& sharing) {
    return sharing.kind == Sharding::Kind::Megatron && sharing.cuts_states;
  }

  // Float16OptimizerWithFloat16Params of core/optimizer/optimizer.py: the fp32 copies, when it is
  // made; its Adam has the moments made by the first step.
  bool makes_copies_first() const {
    const std::optional<Sharding> sharing = sharing_of(trace_.step);
    return sharing && sharing->kind == Sharding::Kind::Megatron && !sharing->cuts_states;
  }

  // A stage's step is played from parts, which know of no first one.
  bool is_step_of_one() const { return trace_.step.mesh[Axis::Pipeline] == 1; }

  bool is_recorded_state(BufferId b) const {
    const Buffer& buffer = schedule_[b];
    return buffer.persistent && buffer.role == Role::Value &&
           buffer.category == Category::OptimizerState;
  }

  bool is_state(BufferId b) const {
    return schedule_[b].persistent && schedule_[b].role == Role::OptimizerState;
  }

  void find_states() {
    for (const Step& step : schedule_.steps)
      if (const auto* run = std::get_if<Run>(&step); run && run->task == Task::Optimizer) {
        for (const BufferId b : schedule_.writes(*run))
          if (is_state(b)) note_state(b);
        if (trace_.update)
          for (std::size_t b = 0; b < schedule_.buffers.size(); ++b)
            if (is_recorded_state(static_cast<BufferId>(b))) note_state(static_cast<BufferId>(b));
      }
  }

  void begin_with_states() {
    for (const State& state : std::exchange(states_, {})) copies_.push_back(state.call);
  }

  // A buffer stands for all moments of its weight, and fp32 copies of one of 16 bits, which are
  // tensors of one size.
  void note_state(BufferId b) {
    if (is_made_later_[index(b)]) return;
    is_made_later_[index(b)] = true;
    AllocatorCall call = allocation(b);
    const std::int64_t parts = is_state(b) ? parts_of_state(b) : 1;
    call.size = Bytes{call.size.count / parts};
    if (first_state_.empty()) first_state_.assign(schedule_.buffers.size(), none);
    first_state_[index(b)] = static_cast<std::uint32_t>(states_.size());
    states_.push_back({b, call});
    if (parts > 1 && has_copy(schedule_[b]) && makes_copies_first()) {
      copies_.push_back(call);
      states_.pop_back();
    }
    for (std::int64_t i = 1; i < parts; ++i) {
      call.slot = static_cast<std::uint32_t>(slots_++);
      states_.push_back({b, call});
    }
  }

  bool has_copy(const Buffer& state) const {
    return trace_.step.master_weights &&
           size_of(trace_[state.tensor].dtype) == size_of(DType::Float16);
  }

  // Of shards more blocks would be predicted than PyTorch has (captured_replicas_test.cpp).
  std::int64_t parts_of_state(BufferId b) const {
    const std::optional<Sharding> sharing = sharing_of(trace_.step);
    if (sharing && sharing->kind != Sharding::Kind::Ddp && !makes_copies_first()) return 1;
    const Buffer& buffer = schedule_[b];
    const std::int64_t parts =
        optimizer_of(trace_, buffer.tensor).states + (has_copy(buffer) ? 1 : 0);
    return parts > 0 && buffer.size.count % parts == 0 ? parts : 1;
  }

  void add_what_stays(const Run& run) {
    if (run.task == Task::Optimizer) return add_states(run);
    if (run.stream != StreamId::Compute) return;
    if (run.task != Task::Recompute) thread_ = is_of_backward(run.task) ? Engine : Program;
    if (multiplies(trace_, run.op)) add_blas_workspace();
  }

  // Behind the product's result, before what it takes meanwhile.
  void add_blas_workspace() {
    if (blas_.empty() || !is_step_of_one()) return;
    std::optional<AllocatorCall>& workspace = blas_[thread_ % blas_.size()];
    if (!workspace) return;
    make(*workspace, calls_.step.size());
    workspace.reset();
  }

  // PyTorch's optimizers make the states of all weights before they update any; one of a hook has
  // one weight.
  void add_states(const Run& run) {
    if (!trace_.step.update_in_backward || trace_.update) {
      for (const State& state : std::exchange(states_, {})) make(state.call, next_run_);
      return;
    }
    for (const BufferId b : schedule_.writes(run)) {
      if (!is_made_later_[index(b)]) continue;
      std::uint32_t i = std::exchange(first_state_[index(b)], none);
      for (; i < states_.size() && states_[i].buffer == b; ++i) make(states_[i].call, next_run_);
    }
  }

  void make(const AllocatorCall& call, std::size_t at) {
    made_.push_back(call);
    calls_.made_at.push_back(at);
  }

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
  std::vector<bool> is_made_later_;         // by buffer
  std::vector<State> states_;               // of them; those of a buffer in a row
  std::vector<AllocatorCall> copies_;       // of weights, and states that the program begins with
  std::vector<std::uint32_t> first_state_;  // by buffer, until they are made
  std::vector<NamedInput> named_;           // of chunks
  std::vector<std::optional<AllocatorCall>> blas_;  // by thread, until it is made
  std::vector<AllocatorCall> made_;                 // by the first step
  std::size_t next_run_ = 0;                        // its first call
  Thread thread_ = Program;
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
  std::size_t threads = 0;
  for (const StreamId stream : workspaces(schedule, framework))
    if (stream == StreamId::Compute)
      ++threads;
    else
      listing.add_workspace(blas_workspace(framework, device), stream);
  listing.add_blas_workspaces(blas_workspace(framework, device), threads);
  if (const Bytes kept = engine_workspace(device); kept > Bytes{})
    for (int i = 0; i < engine_workspaces(trace); ++i)
      listing.add_workspace(kept, StreamId::Compute);
  if (const Bytes kept = score_buffer(trace); kept > Bytes{})
    listing.add_workspace(kept, StreamId::Compute);
  if (framework.megatron) listing.add_named_inputs();
  listing.add_step(framework.op_scratch);
  return std::move(listing).finish();
}

}  // namespace tidemark::allocator
