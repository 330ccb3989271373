// From a million events on the indexes of a recording are made beside each other: they are what
// they are one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "gui/opened.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::many_events_property_test {
namespace {

// Some buffers hold no tensor: where those belong is found by who writes them.
Recording with_nameless(std::size_t pairs) {
  Recording recording = synthetic(pairs);
  for (std::size_t b = 0; b < recording.schedule.buffers.size(); b += 7)
    recording.schedule.buffers[b].tensor = no_tensor;
  return recording;
}

TEST(ManyEvents, EveryBufferIsAtHomeWhereItIsWritten) {
  for (const std::size_t pairs : {1000U, 260'000U}) {
    const Opened opened(with_nameless(pairs));
    ASSERT_EQ(opened.by_home().size(), pairs);
    for (std::size_t b = 0; b < pairs; b += 7) {
      const auto id = static_cast<BufferId>(b);
      const auto writer = opened.buffers().first_writer(id);
      ASSERT_TRUE(writer);
      ASSERT_EQ(opened.home_of(id), opened.op_of(*writer));
    }
    EXPECT_TRUE(std::ranges::is_sorted(opened.by_home(), {}, [&](BufferId id) {
      return std::tuple(opened.schedule()[id].category, opened.block_of(id), opened.home_of(id),
                        id);
    }));
  }
}

TEST(ManyEvents, AreCountedAndSummedUp) {
  constexpr std::size_t pairs = 260'000;
  const Opened opened(synthetic(pairs));
  const auto all = static_cast<std::int64_t>(2 * pairs);
  EXPECT_EQ(opened.memory().total_of(opened.peak()), Bytes{all / 2 * 1024});
  ASSERT_EQ(opened.phases().size(), 2u);
  EXPECT_EQ(opened.phases()[1].range.begin, static_cast<double>(all / 2 * 1000));
  const Nanoseconds begin{0}, end{all * 1000};
  EXPECT_EQ(opened.busy(begin, end), Nanoseconds{all * 900});
  EXPECT_EQ(opened.overlap(begin, end), Nanoseconds{});
  EXPECT_EQ(opened.work_in(begin, end).runs, 2 * pairs);
  EXPECT_EQ(opened.lanes()[0].size() + opened.lanes()[1].size(), 2 * pairs);
}

}  // namespace
}  // namespace tidemark::gui::many_events_property_test
