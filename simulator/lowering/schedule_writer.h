// Writes a schedule step by step: buffers appear and go, runs are put on the current stream, and
// events are added where one stream must follow another.
#pragma once

#include <vector>

#include "simulator/lowering/stream_order.h"
#include "traces/trace.h"

namespace tidemark {

class ScheduleWriter {
 public:
  ScheduleWriter(const Trace& trace, bool synchronizes_host)
      : trace_(trace), order_(schedule_, synchronizes_host) {}
  ScheduleWriter(const ScheduleWriter&) = delete;  // the order writes into this schedule
  ScheduleWriter& operator=(const ScheduleWriter&) = delete;

  /// Where steps go from here on, and which pool new buffers come from.
  StreamId stream = StreamId::Compute;
  StreamOrder& order() { return order_; }

  const Schedule& schedule() const { return schedule_; }
  void set_streams(std::size_t streams) { schedule_.streams = streams; }
  void reserve(std::size_t buffers, std::size_t steps, std::size_t operands);
  Schedule finish() { return std::move(schedule_); }

  /// A buffer that is there before the step and after it.
  BufferId place(Bytes bytes, TensorId tensor, Role role, Category category);
  BufferId allocate(Bytes bytes, TensorId tensor, Role role, Category category);
  /// Frees; persistent buffers stay.
  void free(BufferId buffer);

  // A run is put together from its operands, each named once, and then emitted.
  void begin_run() { reads_.clear(), writes_.clear(); }
  void read(BufferId buffer) { add_once(reads_, buffer); }
  void read_again(BufferId buffer) { reads_.push_back(buffer); }
  void write(BufferId buffer) { add_once(writes_, buffer); }
  /// As write(), for a buffer that is known to be new to the run.
  void write_new(BufferId buffer) { writes_.push_back(buffer); }
  bool writes_something() const { return !writes_.empty(); }
  void run(Task task, OpId op);

  void copy_out(BufferId buffer);
  void copy_in(BufferId buffer);

  // The backward walks from the last op to the first.
  void begin_backward();
  /// The gradients of this op come next.
  void arrive(std::size_t op) { position_ = op; }
  OpId position() const {
    return position_ < trace_.ops.size() ? static_cast<OpId>(position_) : no_op;
  }
  /// The gradients of this op are done: frees what was held for it.
  void leave(std::size_t op);
  /// Frees now, or in the backward not before the gradients of `until` are done.
  void release(BufferId buffer, OpId until);

 private:
  static void add_once(std::vector<BufferId>& list, BufferId buffer);

  const Trace& trace_;
  Schedule schedule_;
  StreamOrder order_;
  std::vector<BufferId> reads_, writes_;
  bool in_backward_ = false;
  std::size_t position_ = 0;
  std::vector<std::vector<BufferId>> held_;  ///< by op; only where something is held
};

}  // namespace tidemark
