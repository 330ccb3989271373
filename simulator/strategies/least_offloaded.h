// What is worth a copy to the host's memory.
#pragma once

#include "base/units.h"

namespace tidemark {

/// Smaller ones take longer to launch than to copy; torchtune's OffloadActivations leaves them, too
/// (min_offload_size).
inline constexpr Bytes least_offloaded{1024};

}  // namespace tidemark
