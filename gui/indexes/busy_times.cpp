// Merges the begins and ends of all lanes in the order of time.
#include "gui/indexes/busy_times.h"

#include <optional>
#include <queue>

namespace tidemark::gui {
namespace {

// The next begin or end of a lane.
struct Change {
  std::int64_t time;
  bool is_end;
  std::size_t lane;
  std::size_t position;

  // At one moment what begins comes first, so that touching runs make one stretch.
  bool operator>(const Change& other) const {
    return time != other.time ? time > other.time : is_end > other.is_end;
  }
};

class Changes {
 public:
  explicit Changes(std::span<const TrackIndex> lanes) : lanes_(lanes) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) add_begin(lane, 0);
  }

  bool is_empty() const { return queue_.empty(); }
  Change next() {
    const Change change = queue_.top();
    queue_.pop();
    const auto [time, is_end, lane, position] = change;
    if (is_end) {
      add_begin(lane, position + 1);
    } else {
      queue_.push({lanes_[lane].end_of(position), true, lane, position});
    }
    return change;
  }

 private:
  // What takes no time is never busy.
  void add_begin(std::size_t lane, std::size_t position) {
    const TrackIndex& track = lanes_[lane];
    while (position < track.size() && track.begin_of(position) == track.end_of(position))
      ++position;
    if (position < track.size()) queue_.push({track.begin_of(position), false, lane, position});
  }

  std::span<const TrackIndex> lanes_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> queue_;
};

}  // namespace

BusyTimes::BusyTimes(std::span<const TrackIndex> lanes) {
  std::size_t used = 0;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    if (lanes[lane].size() > 0) ++used, only_ = lane;
  if (used <= 1) return;
  only_ = none;
  std::size_t busy = 0;
  std::int64_t any_since = 0, several_since = 0;
  for (Changes changes(lanes); !changes.is_empty();) {
    const Change change = changes.next();
    if (!change.is_end) {
      ++busy;
      if (busy == 1) any_since = change.time;
      if (busy == 2) several_since = change.time;
      continue;
    }
    if (busy == 1) any_.add(any_since, change.time);
    if (busy == 2) several_.add(several_since, change.time);
    --busy;
  }
}

}  // namespace tidemark::gui
