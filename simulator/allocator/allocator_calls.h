// What a schedule asks of a caching allocator: a flat list that is made once and replayed under as
// many settings and capacities as are of interest.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/cost/device.h"
#include "simulator/schedule.h"
#include "traces/framework.h"
#include "traces/trace.h"

namespace tidemark::allocator {

struct AllocatorCall {
  enum class Kind : std::uint8_t {
    Allocate,
    Free,
    RecordStream,    ///< `stream` uses it, too, which is another one than its own
    CompleteEvents,  ///< of all streams: the host has waited for them
  };
  Bytes size = {};         ///< of Allocate
  std::uint32_t slot = 0;  ///< which allocation it is about; given again once that is freed
  StreamId stream{};
  Kind kind = Kind::Allocate;

  bool operator==(const AllocatorCall&) const = default;
};

struct AllocatorCalls {
  std::vector<AllocatorCall> before;  ///< what stays: persistent buffers, then BLAS workspaces;
                                      ///< or all that a capture did
  std::vector<AllocatorCall> step;
  /// Of the last calls of `before`, which the first step makes: before which of its calls.
  std::vector<std::size_t> made_at;
  std::size_t work = 0;  ///< calls of the step up to its last run; behind it gradients are freed
  std::size_t slots = 0;
  std::size_t state_slots = 0;  ///< behind those of buffers: further tensors of optimizer states
  std::size_t streams = 1;
  int times = 2;  ///< that the step runs: what it meets is known, or what it left the first time
};

/// In issue order. A run's scratch is taken while it is issued: the next one of its stream may have
/// it again. Buffers used on a foreign stream are guarded by record_stream, and their events
/// complete when the host synchronizes or the step ends. Where the framework keeps cuBLAS
/// workspaces in the pool, each thread takes one with its first product. An optimizer makes its
/// states in its first step, unless the weights that it updates are shards.
AllocatorCalls calls_of(const Trace& trace, const Schedule& schedule, const Framework& framework,
                        const Device& device);

/// The streams that get one. The main one has work of both threads: of the program's, and of the
/// one that runs the backward.
std::vector<StreamId> workspaces(const Schedule& schedule, const Framework& framework);

}  // namespace tidemark::allocator
