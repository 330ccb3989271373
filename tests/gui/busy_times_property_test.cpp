// Busy and overlapping times of random lanes against counting each unit of time.
#include <gtest/gtest.h>

#include <random>

#include "gui/indexes/busy_times.h"

namespace tidemark::gui::busy_times_property_test {
namespace {

constexpr std::int64_t end_of_time = 400;

// Runs that touch, that take no time, and gaps between them.
TrackIndex random_lane(std::mt19937& random) {
  std::vector<Stretch> stretches;
  std::uniform_int_distribution<std::int64_t> length(0, 4);
  for (std::int64_t at = length(random); at < end_of_time - 4; at += length(random)) {
    const std::int64_t begin = at;
    at += length(random);
    stretches.push_back({begin, at, static_cast<std::uint32_t>(stretches.size())});
  }
  return TrackIndex(std::move(stretches));
}

// Lanes that are busy in [moment, moment + 1).
std::size_t busy_at(const std::vector<TrackIndex>& lanes, std::int64_t moment) {
  std::size_t busy = 0;
  for (const TrackIndex& lane : lanes)
    for (std::size_t i = 0; i < lane.size(); ++i)
      busy += lane.begin_of(i) <= moment && moment < lane.end_of(i);
  return busy;
}

TEST(BusyTimes, AreWhatIsCountedMomentByMoment) {
  std::mt19937 random(404);
  for (std::size_t count = 0; count <= 5; ++count) {
    std::vector<TrackIndex> lanes(2);  // two that nothing runs on
    for (std::size_t i = 0; i < count; ++i) lanes.push_back(random_lane(random));
    const BusyTimes times(lanes);
    std::vector<std::size_t> busy;
    for (std::int64_t moment = 0; moment < end_of_time; ++moment)
      busy.push_back(busy_at(lanes, moment));
    std::uniform_int_distribution<std::int64_t> place(0, end_of_time);
    for (int i = 0; i < 200; ++i) {
      const std::int64_t begin = place(random), end = place(random);
      std::int64_t any = 0, several = 0;
      for (std::int64_t moment = begin; moment < end; ++moment) {
        any += busy[static_cast<std::size_t>(moment)] >= 1;
        several += busy[static_cast<std::size_t>(moment)] >= 2;
      }
      ASSERT_EQ(times.busy(lanes, begin, end), any) << count << ": " << begin << " to " << end;
      ASSERT_EQ(times.overlap(begin, end), several) << count << ": " << begin << " to " << end;
    }
  }
}

// Sums are kept for some of the stretches only: those in between have to be added up.
TEST(BusyTimes, OfOneLaneAreItsRuns) {
  std::vector<Stretch> stretches;
  for (std::int64_t i = 0; i < 300; ++i)
    stretches.push_back({10 * i, 10 * i + 1 + i % 7, static_cast<std::uint32_t>(i)});
  const std::vector<TrackIndex> lanes{TrackIndex(stretches)};
  const BusyTimes times(lanes);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(times.busy(lanes, 0, 10 * i), sum) << i;
    sum += 1 + i % 7;
    ASSERT_EQ(times.busy(lanes, 0, 10 * i + 9), sum) << i;
  }
  EXPECT_EQ(times.overlap(0, 3000), 0);
}

}  // namespace
}  // namespace tidemark::gui::busy_times_property_test
