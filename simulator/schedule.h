// A schedule is what would really happen: allocate, run, free, copy, record, wait, on streams, in
// the order in which the host issues them.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "simulator/encoding.h"
#include "traces/tensor.h"

namespace tidemark {

enum class BufferId : std::uint32_t {};
constexpr std::size_t index(BufferId id) { return static_cast<std::size_t>(id); }
inline constexpr BufferId no_buffer{0xffffffff};

enum class EventId : std::uint32_t {};
constexpr std::size_t index(EventId id) { return static_cast<std::size_t>(id); }

enum class StreamId : std::uint16_t { Compute = 0 };
constexpr std::size_t index(StreamId id) { return static_cast<std::size_t>(id); }

/// What the bytes of a buffer stand for.
enum class Role : std::uint8_t {
  Value,
  Codes,
  Gradient,
  OptimizerState,
  Temporary,
  Ranges,         ///< what codes are decoded by: stays from step to step, because it runs with them
  Shard,          ///< the part of a value that this rank keeps
  GradientShard,  ///< the part of a gradient, averaged over ranks, that this rank updates with
};

inline constexpr std::array roles = {
    Named{Role::Value, std::string_view("value")},
    Named{Role::Codes, std::string_view("codes")},
    Named{Role::Gradient, std::string_view("gradient")},
    Named{Role::OptimizerState, std::string_view("optimizer state")},
    Named{Role::Temporary, std::string_view("temporary")},
    Named{Role::Ranges, std::string_view("ranges")},
    Named{Role::Shard, std::string_view("shard")},
    Named{Role::GradientShard, std::string_view("gradient shard")}};
static_assert(is_in_order(roles));

/// A piece of memory with one lifetime. A tensor that is recovered has two buffers, one after the
/// other.
struct Buffer {
  Bytes size;
  TensorId tensor = no_tensor;  ///< the tensor whose value, codes, ranges or gradient it holds
  Role role = Role::Value;
  Category category = Category::Activation;
  StreamId stream = StreamId::Compute;  ///< the stream whose pool it comes from
  bool persistent = false;              ///< present before the first and after the last step
  std::uint16_t encoding = 0;           ///< of codes and ranges: into Schedule::encodings

  bool operator==(const Buffer&) const = default;
};

enum class Task : std::uint8_t {
  Forward,
  Seed,  ///< the loss's own gradient, one
  Backward,
  WeightGradient,  ///< of a backward in two halves: that of what other gradients do not need
  Accumulate,      ///< a second contribution to a gradient is added
  Recompute,       ///< a forward op again
  Reconstruct,     ///< the inverse of a coupling's add
  Quantize,
  Dequantize,
  Optimizer,
  Pack,  ///< copies between tensors and a buffer of a collective
  AllReduce,
  AllGather,
  ReduceScatter,
};

inline constexpr std::array tasks = {
    Named{Task::Forward, std::string_view("forward")},
    Named{Task::Seed, std::string_view("seed")},
    Named{Task::Backward, std::string_view("backward")},
    Named{Task::WeightGradient, std::string_view("weight gradient")},
    Named{Task::Accumulate, std::string_view("accumulate")},
    Named{Task::Recompute, std::string_view("recompute")},
    Named{Task::Reconstruct, std::string_view("reconstruct")},
    Named{Task::Quantize, std::string_view("quantize")},
    Named{Task::Dequantize, std::string_view("dequantize")},
    Named{Task::Optimizer, std::string_view("optimizer")},
    Named{Task::Pack, std::string_view("pack")},
    Named{Task::AllReduce, std::string_view("all-reduce")},
    Named{Task::AllGather, std::string_view("all-gather")},
    Named{Task::ReduceScatter, std::string_view("reduce-scatter")}};
static_assert(is_in_order(tasks));
constexpr std::string_view to_string(Task task) {
  return tasks[static_cast<std::size_t>(task)].name;
}

/// Is it of a forward pass?
constexpr bool is_of_forward(Task task) { return task == Task::Forward || task == Task::Quantize; }

/// Do ranks exchange something in it?
constexpr bool is_collective(Task task) {
  return task == Task::AllReduce || task == Task::AllGather || task == Task::ReduceScatter;
}

struct Allocate {
  BufferId buffer;
};
/// Takes effect when `stream` reaches it; every use on other streams is ordered before.
struct Free {
  BufferId buffer;
  StreamId stream;
};
struct Run {
  Task task;
  StreamId stream;
  OpId op;  ///< of the trace; no_op for optimizer runs
  std::uint32_t first_operand;
  std::uint32_t reads, writes;  ///< operands: read buffers, then written ones
};
struct CopyOut {
  BufferId buffer;  ///< to the host; its contents may then be freed
  StreamId stream;
};
struct CopyIn {
  BufferId buffer;  ///< from the host copy of the same tensor
  StreamId stream;
};
struct Record {
  EventId event;
  StreamId stream;
};
struct Wait {
  EventId event;
  StreamId stream;
};
/// The host waits for the event before it issues anything further.
struct Synchronize {
  EventId event;
};

using Step = std::variant<Allocate, Free, Run, CopyOut, CopyIn, Record, Wait, Synchronize>;

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

struct Schedule {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<BufferId> operands;
  std::vector<Encoding> encodings;
  std::size_t streams = 1;
  std::size_t events = 0;

  const Buffer& operator[](BufferId id) const { return buffers[index(id)]; }
  std::span<const BufferId> reads(const Run& run) const {
    return {operands.data() + run.first_operand, run.reads};
  }
  std::span<const BufferId> writes(const Run& run) const {
    return {operands.data() + run.first_operand + run.reads, run.writes};
  }
  /// Both.
  std::span<const BufferId> operands_of(const Run& run) const {
    return {operands.data() + run.first_operand, run.reads + run.writes};
  }
};

}  // namespace tidemark
