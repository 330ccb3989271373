// When the memory of a freed buffer may be taken again, and by whom.
#pragma once

#include <vector>

#include "simulator/schedule.h"
#include "simulator/stream_counts.h"

namespace tidemark {

/// By stream: after how many of its waits it follows something; 0 is at once. A synchronization of
/// the host counts as a wait of every stream.
using WaitCounts = StreamCounts;
inline constexpr std::uint32_t never = 0xffffffff;

/// By buffer that is freed: after how many of its waits each stream follows all who used the
/// buffer, or its memory before. Empty with one stream, which always does.
std::vector<WaitCounts> derive_reuse(const Schedule& schedule);

}  // namespace tidemark
