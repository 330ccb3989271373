// What is worth a copy to the host's memory.
#pragma once

#include "base/units.h"

namespace tidemark {

/// Smaller ones take longer to launch than to copy; torchtune's OffloadActivations leaves them, too
/// (min_offload_size).
inline constexpr Bytes least_offloaded{1024};

/// Takes 40 µs on 26 GB/s (PCIe 4.0 x16): where a planner chooses, smaller ones are too many copies
/// for what they free.
inline constexpr Bytes least_planned{1 << 20};

}  // namespace tidemark
