// Issues each step of the schedule to a backend, at addresses fixed when the arena was placed.
#include "profiler/replay.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/quoted.h"
#include "profiler/kernel_limits.h"
#include "profiler/measured_timeline.h"
#include "profiler/numbers.h"
#include "simulator/graph/differentiate.h"
#include "simulator/place/place.h"

namespace tidemark::profiler {
namespace {

constexpr std::uint32_t no_step = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Replay::Replay(PlannedStep planned, Backend& backend)
    : Replay(planned, backend, differentiate(*planned.trace, planned.plan, *derived_of(planned))) {}

Replay::Replay(PlannedStep planned, Backend& backend, const JointGraph& graph)
    : planned_(std::move(planned)),
      backend_(backend),
      schedule_(place(graph, placement_of(*planned_.trace, planned_.plan))),
      plan_(plan_arena(schedule_)),
      layouts_(value_layouts(*planned_.trace)) {
  require_kernels(trace());  // before it takes the memory of a step
  memory_ = backend.allocate(plan_.size, MemoryKind::Device);
  place_host_copies();
  binding_.emplace(planned_, graph, schedule_, Addresses{memory_->data(), plan_.offsets});
}

// One place on the host per offloaded storage, and one for the loss.
void Replay::place_host_copies() {
  host_offset_.assign(trace().tensors.size(), -1);
  host_size_ = arena_alignment;  // the loss
  for (const Step& step : schedule_.steps) {
    const CopyOut* copy = std::get_if<CopyOut>(&step);
    if (!copy) continue;
    const Buffer& buffer = schedule_[copy->buffer];
    host_offset_[index(buffer.tensor)] = host_size_;
    host_size_ += round_up(buffer.size.count, arena_alignment);
  }
  host_ = backend_.allocate({host_size_}, MemoryKind::Host);
}

Bytes Replay::workspace() const { return backend_.workspace(); }

std::byte* Replay::address(BufferId buffer) const {
  return memory_->data() + plan_.offsets[index(buffer)];
}

std::byte* Replay::host_address(TensorId storage) const {
  return host_->data() + host_offset_[index(storage)];
}

BufferId Replay::persistent_value(TensorId tensor) const {
  for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
    const Buffer& buffer = schedule_.buffers[b];
    if (buffer.persistent && buffer.role == Role::Value && buffer.tensor == tensor)
      return static_cast<BufferId>(b);
  }
  throw InputError(fmt::format("{} does not stay between steps", quoted(trace()[tensor].name)));
}

void Replay::write(TensorId tensor, const void* from) {
  backend_.upload(address(persistent_value(tensor)), from, size(trace()[tensor]));
}

void Replay::write_again_and_again(TensorId tensor, std::span<const std::byte> part) {
  std::byte* const to = address(persistent_value(tensor));
  const std::int64_t whole = size(trace()[tensor]).count;
  for (std::int64_t at = 0; at < whole; at += std::ssize(part))
    backend_.upload(to + at, part.data(), {std::min(whole - at, std::ssize(part))});
}

void Replay::read(TensorId tensor, void* to) const {
  backend_.download(to, address(persistent_value(tensor)), size(trace()[tensor]));
}

void Replay::keep_gradients() {
  gradient_buffer_.assign(trace().tensors.size(), no_buffer);
  std::int64_t total = 0;
  for (const Step& step : schedule_.steps) {
    const Run* run = std::get_if<Run>(&step);
    if (!run || run->task != Task::Optimizer) continue;
    for (const BufferId buffer : schedule_.reads(*run))
      if (schedule_[buffer].role == Role::Gradient) {
        gradient_buffer_[index(schedule_[buffer].tensor)] = buffer;
        total += schedule_[buffer].size.count;
      }
  }
  gradients_ = backend_.allocate({total}, MemoryKind::Host);
}

// Those that this update reads: another one may free or write over them.
void Replay::copy_out_gradients(const Run& update) {
  const std::span reads = schedule_.reads(update);
  std::byte* to = gradients_->data();
  for (const BufferId buffer : gradient_buffer_) {
    if (buffer == no_buffer) continue;
    const Bytes size = schedule_[buffer].size;
    if (std::ranges::find(reads, buffer) != reads.end())
      backend_.copy(no_step, index(update.stream), to, address(buffer), size);
    to += size.count;
  }
}

std::vector<double> Replay::gradient(TensorId parameter) const {
  if (gradient_buffer_.empty() || gradient_buffer_[index(parameter)] == no_buffer) return {};
  const std::byte* from = gradients_->data();
  for (std::size_t t = 0; t < index(parameter); ++t)
    if (const BufferId buffer = gradient_buffer_[t]; buffer != no_buffer)
      from += schedule_[buffer].size.count;
  const auto bytes = static_cast<std::size_t>(size(trace()[parameter]).count);
  return numbers_of({from, bytes}, trace()[parameter].dtype);
}

// Frameworks that keep gradient buffers between steps set them to zero before each.
void Replay::clear_gradients() {
  for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
    const Buffer& buffer = schedule_.buffers[b];
    if (!buffer.persistent || buffer.role != Role::Gradient) continue;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(buffer.size.count));
    backend_.upload(address(static_cast<BufferId>(b)), zeros.data(), buffer.size);
  }
}

ReplayedStep Replay::step(const StepState& state) {
  using Clock = std::chrono::steady_clock;
  clear_gradients();
  const Clock::time_point begin = Clock::now();
  backend_.begin_step(schedule_.streams, schedule_.events, state);
  for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) issue(i);
  const Nanoseconds host{
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count()};
  const std::vector<Ran> ran = backend_.finish();
  const Tensor& loss = trace()[trace().loss];
  const auto loss_bytes = static_cast<std::size_t>(size(loss).count);
  return {numbers_of({host_->data(), loss_bytes}, loss.dtype)[0],
          measured_timeline(schedule_, ran, backend_.host_time().value_or(host))};
}

void Replay::issue(std::uint32_t i) {
  const auto copy = [&](StreamId stream, std::byte* to, const std::byte* from, BufferId buffer) {
    backend_.copy(i, index(stream), to, from, schedule_[buffer].size);
  };
  std::visit(Overload{[&](const Run& s) { run(i, s); },
                      [&](const CopyOut& s) {
                        copy(s.stream, host_address(schedule_[s.buffer].tensor), address(s.buffer),
                             s.buffer);
                      },
                      [&](const CopyIn& s) {
                        copy(s.stream, address(s.buffer), host_address(schedule_[s.buffer].tensor),
                             s.buffer);
                      },
                      [&](const Record& s) { backend_.record(index(s.stream), index(s.event)); },
                      [&](const Wait& s) { backend_.wait(index(s.stream), index(s.event)); },
                      [&](const Synchronize& s) { backend_.synchronize(index(s.event)); },
                      [](const Allocate&) {}, [](const Free&) {}},
             schedule_.steps[i]);
}

void Replay::run(std::uint32_t i, const Run& run) {
  if (run.task == Task::Optimizer && gradients_) copy_out_gradients(run);
  for (const Call& call : binding_->calls(i)) backend_.run(i, index(run.stream), call);
  if (run.task != Task::Forward) return;
  const TensorId loss = trace().loss;
  for (const BufferId buffer : schedule_.writes(run))
    if (schedule_[buffer].tensor == loss)
      backend_.copy(no_step, index(run.stream), host_->data(), address(buffer),
                    size(trace()[loss]));
}

}  // namespace tidemark::profiler
