// The judge's memory: what each buffer holds, and who has used it when.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/judge/validate_clock.h"
#include "traces/trace.h"

namespace tidemark::judge {

class Memory {
 public:
  Memory(const Trace& trace, const Schedule& schedule);

  /// Complaints that follow are about this step.
  void begin_step(std::size_t step) { step_ = step; }
  template <typename... Args>
  void complain(fmt::format_string<Args...> problem, Args&&... args) {
    complaints_.push_back(where() + fmt::format(problem, std::forward<Args>(args)...));
  }
  std::vector<std::string> take_complaints() { return std::move(complaints_); }

  void allocate(Allocate step);
  void free(Free step);
  void copy(CopyOut step);
  void copy(CopyIn step);
  void record(Record step) { clocks_.record(step); }
  void wait(Wait step);
  void synchronize(Synchronize step);

  /// Work on a stream: all reads, then all writes.
  void begin_work(StreamId stream);
  /// The buffer's number; 0 after a complaint if it is not full.
  std::uint64_t read(BufferId buffer);
  void write(BufferId buffer, std::uint64_t number);

  /// Only persistent buffers may be left.
  void check_balance();
  /// "value of blocks.0.fc (buffer 7)"
  std::string name(BufferId buffer) const;
  std::string name(TensorId tensor) const;

 private:
  enum class State : std::uint8_t { Absent, Empty, Full, Freed };
  struct Cell {
    State state = State::Absent;
    std::uint64_t number = 0;
    Moment born{};  // what its stream knew when it was allocated
    Moment used{};  // per stream: the last work that read or wrote it
    StreamId writer{};
    std::uint32_t written = 0;  // the work of `writer` that filled it
  };
  struct HostCopy {
    std::uint64_t number = 0;
    StreamId stream{};
    std::uint32_t copied = 0;
  };

  std::string where() const;
  void check_buffers();
  Bytes expected_size(const Buffer& buffer) const;
  std::int64_t shard_bytes(const Tensor& tensor) const;
  bool is_usable(BufferId buffer, const char* verb);

  const Trace& trace_;
  const Schedule& schedule_;
  Clocks clocks_;
  StreamId stream_{};
  std::vector<Cell> cells_;
  std::map<std::pair<TensorId, Role>, HostCopy> host_;
  std::size_t step_;
  std::vector<std::string> complaints_;
};

}  // namespace tidemark::judge
