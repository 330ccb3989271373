// Who uses a buffer, and who next, against a walk over all runs.
#include <gtest/gtest.h>

#include "gui/indexes/buffer_index.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::next_use_test {
namespace {

bool uses(const Recording& recording, const TimedRun& run, BufferId buffer) {
  const Step& step = recording.schedule.steps[run.step];
  const auto is_it = [&](BufferId id) { return id == buffer; };
  return std::ranges::any_of(reads_of(recording.schedule, step), is_it) ||
         std::ranges::any_of(writes_of(recording.schedule, step), is_it);
}

// The first in host order of those that begin soonest.
std::optional<RunId> next_by_walking(const Recording& recording, BufferId buffer,
                                     Nanoseconds moment) {
  const auto& runs = recording.timeline.runs;
  std::optional<RunId> next;
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (uses(recording, runs[r], buffer) && runs[r].begin >= moment &&
        (!next || runs[r].begin < runs[index(*next)].begin))
      next = RunId{static_cast<std::uint32_t>(r)};
  return next;
}

// On two streams host order is not the order of time.
class NextUse : public testing::TestWithParam<const char*> {};

TEST_P(NextUse, IsTheOneThatAWalkFinds) {
  const auto opened = predict(vit({GetParam()}, 1)).front().opened;
  const Recording& recording = opened->recording;
  const BufferIndex index_of(recording);
  ASSERT_GT(recording.schedule.buffers.size(), 500u);
  for (std::size_t b = 0; b < recording.schedule.buffers.size(); b += 7) {
    const auto buffer = static_cast<BufferId>(b);
    for (const double share : {0.0, 0.3, 0.5, 0.77, 1.0}) {
      const Nanoseconds moment{static_cast<std::int64_t>(share * opened->end())};
      EXPECT_EQ(index_of.next_use(buffer, moment), next_by_walking(recording, buffer, moment));
    }
    // At the begin of a use that use, behind it the one after.
    for (const std::uint32_t run : index_of.runs_of(buffer))
      for (const Nanoseconds later : {Nanoseconds{0}, Nanoseconds{1}}) {
        const Nanoseconds moment = recording.timeline.runs[run].begin + later;
        EXPECT_EQ(index_of.next_use(buffer, moment), next_by_walking(recording, buffer, moment));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, NextUse, testing::Values("vanilla", "pareprop"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace tidemark::gui::next_use_test
