// What happened, predicted or measured: the same type, so that every view works on both.
#pragma once

#include <array>
#include <vector>

#include "simulator/schedule.h"

namespace tidemark {

using BytesByCategory = std::array<Bytes, category_count>;

Bytes total(const BytesByCategory& bytes);

struct TimedRun {
  std::uint32_t step;  ///< index into the schedule's steps: a Run, CopyOut or CopyIn
  StreamId stream;
  Nanoseconds begin{}, end{};
  Nanoseconds issued{};  ///< when the host had launched it; of what is predicted
};

/// A buffer appears or disappears.
struct MemoryEvent {
  Nanoseconds time{};
  BufferId buffer;
  bool appears;
};

/// Maximum of the live bytes, and the event after which it holds.
struct Peak {
  Bytes bytes;
  std::size_t event = 0;  ///< index of the MemoryEvent that reached it; memory.size() = before all
  BytesByCategory by_category{};
};

struct Timeline {
  std::vector<TimedRun> runs;       ///< predicted: in the order in which they begin
  std::vector<MemoryEvent> memory;  ///< in time order
  BytesByCategory baseline{};       ///< persistent buffers
  Nanoseconds duration{};
  Nanoseconds host{};            ///< when the host has issued the last step
  Nanoseconds idle{};            ///< no stream busy
  Nanoseconds waits_for_host{};  ///< of it, because the host was behind
  Nanoseconds overlap{};         ///< time with two or more streams busy
};

/// The first moment of most live bytes.
Peak peak(const Schedule& schedule, const Timeline& timeline);

/// Buffers present right after `event`, persistent ones included, by id.
std::vector<BufferId> alive_after(const Schedule& schedule, const Timeline& timeline,
                                  std::size_t event);

}  // namespace tidemark
