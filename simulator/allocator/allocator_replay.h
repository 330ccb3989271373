// What PyTorch's caching allocator would report for a schedule.
#pragma once

#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/allocator_settings.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

struct AllocatorResult {
  Bytes allocated_peak;
  Bytes reserved_peak;
  Bytes allocated_at_rest;   ///< behind the step's last run, before its gradients are freed
  std::int64_t retries = 0;  ///< requests that had the whole cache released first
  bool out_of_memory = false;

  bool operator==(const AllocatorResult&) const = default;
};

AllocatorResult result_of(const AllocatorStats& stats, Bytes at_rest, bool fits);

/// Plays what comes before the step, then the step, twice unless the calls say otherwise: the
/// second meets the cache that the first left. What is allocated counts from the first step on,
/// what is reserved from the beginning. Streams have pools of their own.
AllocatorResult replay_allocator(const AllocatorCalls& calls, const AllocatorSettings& settings,
                                 Bytes capacity);
/// The same for a schedule that is replayed once.
AllocatorResult replay_allocator(const Trace& trace, const Schedule& schedule,
                                 const Framework& framework, const Device& device,
                                 const AllocatorSettings& settings, Bytes capacity);

/// The most that a step requests at once, in issue order, each request rounded as the allocator
/// does at least, workspaces included. No less is ever allocated, whatever the settings; and unlike
/// what is allocated or reserved it does not fall when buffers grow.
Bytes requested_peak(const Schedule& schedule, const Framework& framework, const Device& device);

/// What libraries take from the pool for good where a step runs on one stream.
Bytes workspaces_of_one_stream(const Framework& framework, const Device& device);

}  // namespace tidemark::allocator
