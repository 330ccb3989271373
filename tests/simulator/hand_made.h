// Schedules written by hand, for tests of what reads them and asks no trace.
#pragma once

#include <initializer_list>

#include "simulator/schedule.h"

namespace tidemark {

inline constexpr StreamId s0{0}, s1{1};

class HandMade {
 public:
  explicit HandMade(std::size_t streams = 1) { schedule_.streams = streams; }

  const Schedule& schedule() const { return schedule_; }

  BufferId place(std::int64_t bytes, Category category = Category::Parameter) {
    const BufferId id = buffer(bytes, s0, category);
    schedule_.buffers.back().persistent = true;
    return id;
  }
  BufferId allocate(std::int64_t bytes, StreamId stream = s0,
                    Category category = Category::Activation) {
    const BufferId id = buffer(bytes, stream, category);
    return step(Allocate{id}), id;
  }
  void free(BufferId id, StreamId stream = s0) { step(Free{id, stream}); }
  /// A run that streams through its operands.
  void run(std::initializer_list<BufferId> reads, std::initializer_list<BufferId> writes,
           StreamId stream = s0, Task task = Task::Accumulate, OpId op = no_op) {
    const auto first = static_cast<std::uint32_t>(schedule_.operands.size());
    schedule_.operands.insert(schedule_.operands.end(), reads);
    schedule_.operands.insert(schedule_.operands.end(), writes);
    step(Run{task, stream, op, first, static_cast<std::uint32_t>(reads.size()),
             static_cast<std::uint32_t>(writes.size())});
  }
  void copy_out(BufferId id, StreamId stream = s0) { step(CopyOut{id, stream}); }
  EventId record(StreamId stream) {
    const auto event = static_cast<EventId>(schedule_.events++);
    return step(Record{event, stream}), event;
  }
  void wait(EventId event, StreamId stream) { step(Wait{event, stream}); }
  void synchronize(EventId event) { step(Synchronize{event}); }

 private:
  BufferId buffer(std::int64_t bytes, StreamId stream, Category category) {
    const auto id = static_cast<BufferId>(schedule_.buffers.size());
    schedule_.buffers.push_back({.size = {bytes}, .category = category, .stream = stream});
    return id;
  }
  void step(Step step) { schedule_.steps.push_back(step); }

  Schedule schedule_;
};

}  // namespace tidemark
