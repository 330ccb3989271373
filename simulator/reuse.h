// When the memory of a freed buffer may be taken again, and by whom.
#pragma once

#include <vector>

#include "simulator/schedule.h"
#include "simulator/stream_counts.h"

namespace tidemark {

inline constexpr std::uint32_t never_follows = 0xffffffff;  ///< of Reuse::ready_after

struct Reuse {
  /// The streams that take memory: each has buffers of its own. The others only run or copy.
  std::vector<StreamId> takers;
  /// By buffer that is freed and by taker: after how many of its waits the taker follows all who
  /// used the buffer, or its memory before; 0 is at once. A synchronization of the host counts as a
  /// wait of every stream. No rows with one stream, which always follows.
  StreamCounts ready_after{0};
};

Reuse derive_reuse(const Schedule& schedule);

}  // namespace tidemark
