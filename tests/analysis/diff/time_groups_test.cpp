// Where a step's time goes.
#include "analysis/diff/time_groups.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/analysis/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark::diff::time_groups_test {
namespace {

std::vector<TimeGroup> groups_of(const Recording& recording) {
  return time_groups(*recording.trace, recording.schedule, recording.timeline);
}

TEST(TimeGroups, AddUpToAllRuns) {
  for (const char* strategy : {"vanilla", "checkpoint", "pareprop", "mesa"}) {
    const Recording recording =
        recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), strategy);
    Nanoseconds runs{}, sums{};
    std::int64_t count = 0;
    for (const TimedRun& run : recording.timeline.runs) runs += run.end - run.begin;
    for (const TimeGroup& group : groups_of(recording)) sums += group.time, count += group.runs;
    EXPECT_EQ(sums, runs) << strategy;
    EXPECT_EQ(count, static_cast<std::int64_t>(recording.timeline.runs.size())) << strategy;
  }
}

// Twelve blocks with q, k, v or a packed qkv, the output, fc1 and fc2, and the head.
TEST(TimeGroups, TellTaskOpAndStreamApart) {
  const Recording recording =
      recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), "checkpoint");
  const std::vector<TimeGroup> groups = groups_of(recording);
  const auto runs_of = [&](std::string_view name) {
    for (const TimeGroup& group : groups)
      if (name_of(group) == name) return group.runs;
    return std::int64_t{0};
  };
  std::int64_t linears = 0;
  for (const Op& op : recording.trace->ops) linears += op.kind == OpKind::Linear;
  EXPECT_EQ(runs_of("forward of linear"), linears);
  EXPECT_EQ(runs_of("backward of linear"), linears);
  EXPECT_GT(runs_of("recompute of linear"), 0);
  EXPECT_LT(runs_of("recompute of linear"), linears);
  EXPECT_GT(runs_of("optimizer"), 0);  // of no op
  for (std::size_t i = 1; i < groups.size(); ++i) EXPECT_LE(groups[i].time, groups[i - 1].time);
}

TEST(TimeGroups, SeeTheSecondStream) {
  const Recording recording =
      recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), "pareprop");
  std::int64_t streams = 0;
  for (const TimeGroup& group : groups_of(recording)) streams = std::max(streams, group.stream + 1);
  EXPECT_EQ(streams, 2);
}

}  // namespace
}  // namespace tidemark::diff::time_groups_test
