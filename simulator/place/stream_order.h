// Happens-before between streams while a schedule is emitted: which runs a stream is known to
// follow, and the events that make it follow more.
#pragma once

#include <vector>

#include "simulator/clock.h"

namespace tidemark {

class StreamOrder {
 public:
  /// Appends Record, Wait, Synchronize and Free steps to `schedule`.
  StreamOrder(Schedule& schedule, bool synchronizes_host)
      : schedule_(schedule), synchronizes_host_(synchronizes_host) {}

  /// Before a run is emitted: waits for the writers of what it reads, and for all users of what it
  /// writes. Then counts the run.
  void before_run(StreamId stream, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes);
  /// A moment of a stream: after this many of its runs.
  struct Point {
    StreamId stream{};
    std::uint32_t runs = 0;
  };
  /// Marks this point of the stream, so that others can wait for it and not for what follows.
  Point mark(StreamId stream);
  /// What `stream` runs next happens after the point.
  void follow(StreamId stream, Point point) { follow(stream, point.stream, point.runs); }
  /// Everything issued so far, on all streams, happens before what `stream` runs next.
  void join(StreamId stream);
  /// Emits Free on a stream that is ordered after every use: `stream` if it is, or else later.
  void free(BufferId buffer, StreamId stream);

 private:
  struct Mark {
    std::uint32_t runs;
    EventId event;
    Clock clock;
  };
  struct Use {
    StreamId writer{};
    std::uint32_t written = 0;
    Clock used{};
  };

  Use& use_of(BufferId buffer);
  void follow(StreamId stream, StreamId other, std::uint32_t runs);
  bool is_ordered(BufferId buffer, StreamId stream);
  void retry_pending(StreamId stream);

  Schedule& schedule_;
  bool synchronizes_host_;
  std::array<Clock, max_streams> known_{};
  Clock runs_{};
  std::array<std::vector<Mark>, max_streams> marks_;
  std::vector<Use> uses_;
  std::vector<BufferId> pending_;
};

}  // namespace tidemark
