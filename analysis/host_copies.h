// The host's memory that a step's copies take.
#pragma once

#include "simulator/schedule.h"

namespace tidemark {

/// The most bytes that lie in the host's pinned memory at once: each from its copy out to its last
/// copy in, in the order in which the host issues them. Without the rounding of the allocator that
/// hands them out (PyTorch's CachingHostAllocator rounds each to a power of two).
Bytes host_copies_peak(const Schedule& schedule);

}  // namespace tidemark
