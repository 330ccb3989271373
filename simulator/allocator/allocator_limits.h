// What no replay of some calls exceeds, wherever blocks come to lie: far less work than a replay.
#pragma once

#include <optional>

#include "simulator/allocator/allocator_calls.h"
#include "simulator/allocator/repeated_calls.h"

namespace tidemark::allocator {

struct AllocatorLimits {
  Bytes allocated;
  Bytes capacity;  ///< with so much no replay is out of memory
};

/// Nothing where settings or calls allow no such limit.
std::optional<AllocatorLimits> limits_of(const AllocatorCalls& calls,
                                         const AllocatorSettings& settings);
std::optional<AllocatorLimits> limits_of(const RepeatedCalls& calls,
                                         const AllocatorSettings& settings);

}  // namespace tidemark::allocator
