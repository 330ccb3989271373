// Happens-before between streams while a schedule is emitted: which runs a stream is known to
// follow, and the events that make it follow more.
#pragma once

#include <optional>
#include <vector>

#include "simulator/clock.h"
#include "simulator/schedule.h"

namespace tidemark {

class StreamOrder {
 public:
  /// Appends Record, Wait, Synchronize and Free steps to `schedule`.
  StreamOrder(Schedule& schedule, bool synchronizes_host)
      : schedule_(schedule),
        synchronizes_host_(synchronizes_host),
        known_(schedule.streams, schedule.streams),
        runs_(schedule.streams),
        marks_(schedule.streams),
        known_at_(schedule.streams),
        used_(schedule.streams) {}

  /// Before a run is emitted: waits for the writers of what it reads, and for all users of what it
  /// writes. Then counts the run.
  void before_run(StreamId stream, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes);
  /// A moment of a stream: after this many of its runs.
  struct Point {
    StreamId stream{};
    std::uint32_t runs = 0;
  };
  /// Where the stream is now. Who waits for it later may wait for some of what follows, too.
  Point now(StreamId stream) const { return {stream, runs_[index(stream)]}; }
  /// Marks where the stream is, so that others can wait for it and not for what follows.
  Point mark(StreamId stream);
  /// What `stream` runs next happens after the point.
  void follow(StreamId stream, Point point) { follow(stream, point.stream, point.runs); }
  /// `stream` follows all that was issued to `other`: its waits and allocations, too.
  void catch_up(StreamId stream, StreamId other) { wait_for(record(other), stream); }
  /// Everything issued so far, on all streams, happens before what `stream` runs next.
  void join(StreamId stream);
  /// Emits Free on a stream that is ordered after every use: `stream` if it is, or else later on
  /// the first that is.
  void free(BufferId buffer, StreamId stream);
  /// Emits Free on this stream as soon as it is ordered after every use, and on no other: who
  /// copies memory away beside the stream that allocates must not give it to that stream early.
  void free_only_on(BufferId buffer, StreamId stream);

 private:
  struct Mark {
    std::uint32_t runs;
    EventId event;  ///< when the stream knew known_at_[event]
  };
  struct Write {
    StreamId writer{};
    std::uint32_t runs = 0;
  };

  // Asked at each run and each free, and hardly ever answered with yes.
  void make_room_for_uses() {
    if (written_.size() < schedule_.buffers.size()) grow_uses();
  }
  void grow_uses();
  void follow(StreamId stream, StreamId other, std::uint32_t runs);
  bool is_ordered(BufferId buffer, StreamId stream);
  Mark record(StreamId stream);
  void wait_for(Mark mark, StreamId stream);
  void retry_pending(StreamId stream);

  Schedule& schedule_;
  bool synchronizes_host_;
  StreamCounts known_;                    ///< by stream
  std::vector<std::uint32_t> runs_;       ///< by stream
  std::vector<std::vector<Mark>> marks_;  ///< by stream
  StreamCounts known_at_;                 ///< by event
  StreamCounts used_;                     ///< by buffer: each stream's runs when it last used it
  std::vector<Write> written_;            ///< by buffer: the last
  struct Pending {
    BufferId buffer;
    std::optional<StreamId> only_on;
  };
  std::vector<Pending> pending_;
};

}  // namespace tidemark
