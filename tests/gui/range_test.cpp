// Two cursors: what is allocated, freed and computed between them, compared with a look at every
// event and run.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "gui/drawing/paint.h"
#include "gui/range_table.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::range_test {
namespace {

// Of all events in (begin, end], in the plainest way.
void expect_events(const Opened& opened, Range range, const RangeTable& table) {
  Bytes allocated, freed, at_begin, at_end;
  for (std::size_t b = 0; b < opened.schedule().buffers.size(); ++b)
    if (opened.schedule().buffers[b].persistent) at_begin += opened.schedule().buffers[b].size;
  at_end = at_begin;
  std::set<BufferId> before, after;
  for (const MemoryEvent& event : opened.timeline().memory) {
    const auto time = static_cast<double>(event.time.count());
    if (time > range.end) break;
    const Bytes size = opened.schedule()[event.buffer].size;
    const Bytes change = event.appears ? size : Bytes{-size.count};
    at_end += change;
    event.appears ? (void)after.insert(event.buffer) : (void)after.erase(event.buffer);
    if (time <= range.begin) {
      at_begin += change;
      before = after;
    } else {
      (event.appears ? allocated : freed) += size;
    }
  }
  EXPECT_EQ(table.allocated, allocated);
  EXPECT_EQ(table.freed, freed);
  EXPECT_EQ(table.at_begin, at_begin);
  EXPECT_EQ(table.at_end, at_end);
  std::size_t differ = 0;
  for (const BufferId id : before) differ += after.contains(id) ? 0 : 1;
  for (const BufferId id : after) differ += before.contains(id) ? 0 : 1;
  EXPECT_EQ(table.tensors.size() + table.others, differ);
  Bytes change;
  std::size_t runs = 0;
  for (const RangeRow& row : table.rows) change += row.change(), runs += row.runs;
  EXPECT_EQ(change, at_end - at_begin);
  std::size_t overlapping = 0;
  for (const TimedRun& run : opened.timeline().runs)
    overlapping += static_cast<double>(run.end.count()) > range.begin &&
                           static_cast<double>(run.begin.count()) < range.end && run.begin < run.end
                       ? 1
                       : 0;
  EXPECT_EQ(runs, overlapping);
}

TEST(RangeTable, IsWhatALookAtEveryEventFinds) {
  const auto opened = predict(vit({"pareprop"})).front().opened;
  std::mt19937_64 random(17);
  for (int i = 0; i < 50; ++i) {
    const auto place = [&] {
      return static_cast<double>(random() % static_cast<std::uint64_t>(opened->end()));
    };
    const double a = place(), b = place();
    const Range range{std::min(a, b), std::max(a, b)};
    SCOPED_TRACE(testing::Message() << range.begin << " to " << range.end);
    expect_events(*opened, range, range_table(*opened, range));
  }
}

TEST(RangeTable, OfTheWholeStepHasAllKindsAndIsBusyAllTheTime) {
  const auto opened = predict(vit({"vanilla"})).front().opened;
  const RangeTable table = range_table(*opened, {0, opened->end()});
  Nanoseconds busy{};
  std::set<std::string> kinds;
  for (const RangeRow& row : table.rows) busy += row.busy, kinds.insert(row.kind);
  Nanoseconds expected{};
  for (const TimedRun& run : opened->timeline().runs) expected += run.end - run.begin;
  EXPECT_EQ(busy, expected);
  EXPECT_EQ(kinds.size(), table.rows.size()) << "one row per kind";
  EXPECT_TRUE(kinds.contains("linear"));
  EXPECT_TRUE(kinds.contains("optimizer"));
}

// Forward makes a buffer of 1 KiB a microsecond.
TEST(RangeTable, SaysWhatCameAndStays) {
  const Opened opened(synthetic(100));
  const RangeTable table = range_table(opened, {10'500, 40'500});
  EXPECT_EQ(table.allocations, 30u);
  EXPECT_EQ(table.frees, 0u);
  EXPECT_EQ(table.tensors.size(), RangeTable::most_listed);
  EXPECT_EQ(table.others, 30 - RangeTable::most_listed);
  EXPECT_EQ(lines_of(table)[0].value, "41.0 KiB, +30.0 KiB");
}

TEST(RangeTable, OfMillionsComesBesideTheDrawing) {
  const auto opened = std::make_shared<const Opened>(synthetic(NewestRange::most_at_once));
  NewestRange newest;
  const Range all{0, opened->end()};
  EXPECT_EQ(newest.look(opened, all), nullptr);
  newest.wait();
  const RangeTable* table = newest.look(opened, all);
  ASSERT_TRUE(table);
  // The first one happens at the begin itself.
  EXPECT_EQ(table->allocations, NewestRange::most_at_once - 1);
  // A short one is there at once.
  EXPECT_EQ(newest.look(opened, {0, 5000})->allocations, 5u);
}

class TwoCursors : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"vanilla"})); }
  Robot robot_;
};

TEST_F(TwoCursors, ShiftAndClickMakeTheRangeFromTheCursor) {
  robot_.click(robot_.middle(), robot_.curve());
  const double cursor = robot_.view.cursor_time;
  robot_.input.keys.insert(Key::Shift);
  robot_.click(robot_.middle() + 100, robot_.curve());
  ASSERT_TRUE(robot_.view.range);
  EXPECT_EQ(robot_.view.range->begin, cursor);
  EXPECT_NEAR(robot_.view.range->end, robot_.moment_at(robot_.middle() + 100), 1);
  EXPECT_GT(robot_.view.facts.range_rows, 3u);
}

TEST_F(TwoCursors, AnEdgeIsMovedAndTheOtherStays) {
  robot_.drag(0, robot_.middle(), robot_.middle() + 100, robot_.curve());
  const Range before = *robot_.view.range;
  robot_.drag(0, std::round(robot_.x_of(before.begin)), robot_.middle() - 80, robot_.curve());
  ASSERT_TRUE(robot_.view.range);
  EXPECT_EQ(robot_.view.range->end, before.end);
  EXPECT_NEAR(robot_.view.range->begin, robot_.moment_at(robot_.middle() - 80), 1);
}

TEST_F(TwoCursors, AClickLeavesTheRangeAndMovesTheCursor) {
  robot_.drag(0, robot_.middle(), robot_.middle() + 100, robot_.curve());
  const Range before = *robot_.view.range;
  const float x = robot_.middle() - 60;
  robot_.click(x, robot_.curve());
  EXPECT_EQ(robot_.view.range, before);
  // Of the states in the pixel that is clicked the highest is taken, and the cursor is not before
  // that begins.
  const Axis time{robot_.view.visible, robot_.view.facts.left, robot_.view.facts.right};
  const auto begin =
      static_cast<double>(robot_.shown().memory().begin_of(robot_.view.cursor).count());
  EXPECT_LT(begin, time.to_value(x + 1));
  EXPECT_EQ(robot_.view.cursor_time, std::max(time.to_value(x), begin));
}

}  // namespace
}  // namespace tidemark::gui::range_test
