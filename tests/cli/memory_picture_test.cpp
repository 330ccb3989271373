// Memory over time in characters, drawn as one would by hand.
#include "cli/reports/memory_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::cli::memory_picture_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t mib = 1 << 20;

Nanoseconds ns(std::int64_t count) { return Nanoseconds{count}; }

/// 4 MiB that stay, and 4 more in [2, 6) of 8 ns.
struct Step {
  Schedule schedule;
  Timeline timeline;

  Step() {
    schedule.buffers = {{.size = {4 * mib}, .persistent = true}, {.size = {4 * mib}}};
    keep(4 * mib);
    timeline.memory = {{ns(2), BufferId{1}, true}, {ns(6), BufferId{1}, false}};
    timeline.duration = ns(8);
  }
  void keep(std::int64_t bytes) {
    timeline.baseline[static_cast<std::size_t>(Category::Parameter)] = {bytes};
  }
};

/// Eight columns.
Style narrow() {
  Style style;
  style.width = 20;
  return style;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// A column for each nanosecond, the one in which memory goes included; half of the eight rows are
// always full.
TEST(MemoryPicture, HasTheHeightOfTheMemory) {
  const Step step;
  EXPECT_THAT(lines_of(memory_picture(step.schedule, step.timeline, narrow())),
              testing::ElementsAre("  8.00 MiB │  █████",   //
                                   "           │  █████",   //
                                   "           │  █████",   //
                                   "           │  █████",   //
                                   "           │████████",  //
                                   "           │████████",  //
                                   "           │████████",  //
                                   "         0 │████████",  //
                                   "           └───────",   //
                                   "              ▲ peak"));
}

// 4.5 of 8 MiB are four and a half rows.
TEST(MemoryPicture, DrawsPartsOfARow) {
  Step step;
  step.keep(4 * mib + mib / 2);
  step.schedule.buffers[1].size = {3 * mib + mib / 2};
  const auto lines = lines_of(memory_picture(step.schedule, step.timeline, narrow()));
  EXPECT_EQ(lines[3], "           │▄▄█████▄");
  EXPECT_EQ(lines[4], "           │████████");
}

TEST(MemoryPicture, IsNeverWiderThanSeventyTwoColumns) {
  const Step step;
  Style style;
  style.width = 300;
  const auto lines = lines_of(memory_picture(step.schedule, step.timeline, style));
  EXPECT_EQ(display_width(lines[7]), 12u + 72u);
  EXPECT_EQ(display_width(lines[8]), 11u + 72u);
}

// The column of the peak has another colour than the rest.
TEST(MemoryPicture, PaintsThePeak) {
  const Step step;
  Style style = narrow();
  style.color = true;
  const std::string top = lines_of(memory_picture(step.schedule, step.timeline, style)).front();
  EXPECT_THAT(top, HasSubstr(style.paint("█", Ink::Bad)));
  EXPECT_THAT(top, HasSubstr(style.paint("████ ", Ink::Bar)));
}

TEST(MemoryPicture, OfAStepWithoutMemoryIsEmpty) {
  Step step;
  step.keep(0);
  step.timeline.memory.clear();
  const auto lines = lines_of(memory_picture(step.schedule, step.timeline, narrow()));
  EXPECT_EQ(lines.front(), "       0 B │");
  EXPECT_EQ(lines.back(), "            ▲ peak");
}

Explanation explained(std::int64_t backward, std::int64_t optimizer) {
  Step step;
  Explanation explanation;
  explanation.evaluation.schedule = step.schedule;
  explanation.evaluation.timeline = step.timeline;
  explanation.evaluation.report.live_peak = {8 * mib};
  explanation.peak_time = ns(2);
  explanation.backward_begin = ns(backward);
  explanation.optimizer_begin = ns(optimizer);
  return explanation;
}

std::string axis_of(const Explanation& explanation, std::size_t width) {
  Style style;
  style.width = width;
  const auto lines = lines_of(memory_picture(explanation, style));
  return lines[lines.size() - 2];
}

// 40 columns: forward in 10, backward in 25, the optimizer in 5.
TEST(MemoryPicture, NamesThePhasesThatHaveRoom) {
  EXPECT_EQ(axis_of(explained(2, 7), 52), "           └forward──┴backward────────────────┴────");
}

// A name needs its letters and the corner: forward 8 columns.
TEST(MemoryPicture, NamesAPhaseThatJustFits) {
  EXPECT_THAT(axis_of(explained(4, 8), 28), StartsWith("           └forward┴"));  // 8 and 8
  EXPECT_THAT(axis_of(explained(4, 8), 26), StartsWith("           └──────┴"));   // 7 and 7
}

}  // namespace
}  // namespace tidemark::cli::memory_picture_test
