// When any stream is busy, and when two or more are.
#pragma once

#include <span>

#include "gui/indexes/track_index.h"

namespace tidemark::gui {

class BusyTimes {
 public:
  BusyTimes() = default;
  explicit BusyTimes(std::span<const TrackIndex> lanes);

  /// How much of [begin, end) is busy on any of the lanes, and on several.
  std::int64_t busy(std::span<const TrackIndex> lanes, std::int64_t begin, std::int64_t end) const {
    return only_ < lanes.size() ? lanes[only_].covered(begin, end) : any_.covered(begin, end);
  }
  std::int64_t overlap(std::int64_t begin, std::int64_t end) const {
    return several_.covered(begin, end);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::size_t only_ = none;  ///< the one lane with anything on it, which says it all
  Coverage any_, several_;
};

}  // namespace tidemark::gui
