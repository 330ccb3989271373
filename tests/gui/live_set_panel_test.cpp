// The table of what is alive says of each tensor how large it is, until when it waits and why, and
// is sorted by whatever head is clicked.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::live_set_panel_test {
namespace {

// Four tensors of a KiB come at 0, 1, 2 and 3 µs and are read at 7, 6, 5 and 4 µs. A parameter of 3
// KiB is there all the time.
Recording four_and_a_parameter() {
  Recording recording = synthetic(4);
  recording.schedule.buffers.push_back(
      {.size = {3 << 10}, .category = Category::Parameter, .persistent = true});
  recording.offsets.push_back(4 << 10);
  recording.planned = Bytes{7 << 10};
  recording.timeline.baseline[static_cast<std::size_t>(Category::Parameter)] = Bytes{3 << 10};
  return recording;
}

class LiveSetPanel : public testing::Test {
 protected:
  void SetUp() override {
    robot_.view.groups_blocks = false;
    robot_.open(four_and_a_parameter());
    robot_.open_tab(Tab::LiveSet);
  }
  /// First columns of the rows, from the top; what stands right of them is the details' panel.
  std::vector<std::string> names() const {
    const Drawing drawing = robot_.drawn();
    const Drawn* head = drawing.find("tensor");
    std::vector<std::string> names;
    if (!head) return names;
    std::vector<Drawn> rows;
    for (const Drawn& one : drawing.texts)
      if (one.box.y0 > head->box.y0 + 5 && one.box.x0 < 60) rows.push_back(one);
    std::ranges::stable_sort(rows, {}, [](const Drawn& one) { return one.box.y0; });
    for (const Drawn& row : rows) names.push_back(row.text);
    return names;
  }
  std::string row(std::string_view name) const {
    const Drawing drawing = robot_.drawn();
    const Drawn* head = drawing.find("tensor");
    for (const Drawn& one : drawing.texts)
      if (one.text == name && one.box.y0 > head->box.y0 && one.box.x0 < 60)
        return drawing.line_in({0, one.box.y0, 860, one.box.y1});
    return "";
  }

  Reader robot_;
};

using testing::ElementsAre;

const std::string parameter = "(value, parameter)";

TEST_F(LiveSetPanel, ARowSaysHowMuchUntilWhenAndWhy) {
  EXPECT_EQ(row("block0.gelu1"), "block0.gelu1 | 1.00 KiB | activation | in 3.00 µs | not saved");
  EXPECT_EQ(row("block0.gelu3"), "block0.gelu3 | 1.00 KiB | activation | in 0 ns | not saved");
  EXPECT_EQ(row(parameter), parameter + " | 3.00 KiB | parameter | none | persistent");
}

TEST_F(LiveSetPanel, TheLargestIsFirstAndEqualOnesKeepTheirOrder) {
  EXPECT_THAT(names(), ElementsAre(parameter, "block0.gelu0", "block0.gelu1", "block0.gelu2",
                                   "block0.gelu3"));
  robot_.click_on("size");  // it falls already
  EXPECT_EQ(names().front(), "block0.gelu0");
  EXPECT_EQ(names().back(), parameter);
}

TEST_F(LiveSetPanel, IsSortedByName) {
  robot_.click_on("tensor");
  EXPECT_THAT(names(), ElementsAre(parameter, "block0.gelu0", "block0.gelu1", "block0.gelu2",
                                   "block0.gelu3"));
  robot_.click_on("tensor");
  EXPECT_THAT(names(), ElementsAre("block0.gelu3", "block0.gelu2", "block0.gelu1", "block0.gelu0",
                                   parameter));
}

TEST_F(LiveSetPanel, IsSortedByNextUse) {
  robot_.click_on("next use");
  EXPECT_THAT(names(), ElementsAre("block0.gelu3", "block0.gelu2", "block0.gelu1", "block0.gelu0",
                                   parameter));  // which nobody uses
  robot_.click_on("next use");
  EXPECT_EQ(names().front(), parameter);
}

TEST_F(LiveSetPanel, IsSortedByAgeTheOldestFirst) {
  robot_.click_on("age");
  EXPECT_THAT(names(), ElementsAre(parameter, "block0.gelu0", "block0.gelu1", "block0.gelu2",
                                   "block0.gelu3"));
  robot_.click_on("age");
  EXPECT_EQ(names().front(), "block0.gelu3");
}

TEST_F(LiveSetPanel, IsSortedByCategory) {
  robot_.click_on("category");
  EXPECT_EQ(names().front(), parameter);
  robot_.click_on("category");
  EXPECT_EQ(names().front(), "block0.gelu0");
  EXPECT_EQ(names().back(), parameter);
}

TEST_F(LiveSetPanel, SaysHowMuchIsAliveWhenAndThatItIsThePeak) {
  EXPECT_TRUE(robot_.says("7.00 KiB alive in 5 buffers at 3.00 µs, the peak"));
  put_cursor(robot_.shown(), 2, robot_.view);
  robot_.frames(3);
  const std::string line = "5.00 KiB alive in 3 buffers at 1.00 µs";
  ASSERT_TRUE(robot_.says(line));
  EXPECT_EQ(robot_.drawn().find(line)->text, line);  // and nothing more
  EXPECT_THAT(names(), ElementsAre(parameter, "block0.gelu0", "block0.gelu1"));
}

TEST_F(LiveSetPanel, SharesAreBarsBehindTheSizes) {
  const Drawing drawing = robot_.drawn();
  const Drawn* size = drawing.find("size");
  ASSERT_TRUE(size);
  const float left = size->box.x0;
  std::vector<float> widths;
  for (const Drawn& bar : drawing.of_color(theme::accent))
    if (bar.alpha() == 70 && std::abs(bar.box.x0 - left) < 2 && bar.box.y0 > size->box.y1)
      widths.push_back(bar.box.width());
  ASSERT_EQ(widths.size(), 5u);
  EXPECT_NEAR(widths[0], 3 * widths[1], 3);             // 3 KiB and 1 KiB
  EXPECT_NEAR(widths[0] / (5.4F * 14), 3.0 / 7, 0.03);  // of 7 in a column of 5.4 em
}

TEST_F(LiveSetPanel, AClickSelectsTheTensor) {
  robot_.click_on("block0.gelu2");
  // The first text of that name is in the timeline, which is the module's.
  robot_.view.selection = {};
  const Drawing drawing = robot_.drawn();
  for (const Drawn& one : drawing.texts)
    if (one.text == "block0.gelu2" && one.box.x0 < 60)
      robot_.click(one.box.x0 + 5, std::floor(one.box.y0) + 5);
  EXPECT_EQ(robot_.view.selection.buffer, BufferId{2});
  EXPECT_EQ(robot_.view.selection.op, static_cast<OpId>(2));
}

TEST_F(LiveSetPanel, TheFilterLeavesWhatHoldsIt) {
  robot_.view.live_filter = "GELU2";
  robot_.frames(2);
  EXPECT_THAT(names(), ElementsAre("block0.gelu2"));
  EXPECT_EQ(robot_.view.facts.live_rows, 1u);
  robot_.view.live_filter = "persist";  // why it is there
  robot_.frames(2);
  EXPECT_THAT(names(), ElementsAre(parameter));
}

TEST_F(LiveSetPanel, TheFilterIsTyped) {
  robot_.click_on("filter");
  robot_.type("gelu3");
  EXPECT_EQ(robot_.view.live_filter, "gelu3");
  EXPECT_THAT(names(), ElementsAre("block0.gelu3"));
}

// Of 40 ops in two blocks, each name stands in both.
TEST(LiveSetGroups, AreOneRowThatIsOpenedAndClosed) {
  Reader robot;
  robot.open(synthetic(40));
  robot.open_tab(Tab::LiveSet);
  EXPECT_EQ(robot.view.facts.live_rows, 20u);
  ASSERT_TRUE(robot.says("▶ block*.gelu0 ×2"));
  EXPECT_EQ(robot.line_of("▶ block*.gelu0 ×2", 0, 860),
            "▶ block*.gelu0 ×2 | 2.00 KiB | activation | in 20.0 µs | not saved");
  robot.click_on("▶ block*.gelu0 ×2");
  EXPECT_EQ(robot.view.facts.live_rows, 22u);
  EXPECT_TRUE(robot.says("▼ block*.gelu0 ×2"));
  EXPECT_TRUE(robot.view.selection.is_empty());
  // Members stand further right.
  const Drawing drawing = robot.drawn();
  const Drawn *group = drawing.find("▼ block*.gelu0 ×2"), *member = nullptr;
  for (const Drawn& one : drawing.texts)
    if (one.text == "block1.gelu0" && one.box.y0 > group->box.y0) member = &one;
  ASSERT_TRUE(member);
  EXPECT_NEAR(member->box.x0 - group->box.x0, 1.2F * 14, 1);
  robot.click_on("▼ block*.gelu0 ×2");
  EXPECT_EQ(robot.view.facts.live_rows, 20u);
  robot.click_on("group blocks");
  EXPECT_FALSE(robot.view.groups_blocks);
  EXPECT_EQ(robot.view.facts.live_rows, 40u);
}

TEST(LiveSetOfNobody, SaysThatNoMemoryWasRecorded) {
  Reader robot;
  Recording recording = of_tasks({Task::Forward});
  recording.source = Source::Measured;
  robot.open(std::move(recording));
  robot.open_tab(Tab::LiveSet);
  EXPECT_TRUE(robot.says("no memory was recorded"));
}

}  // namespace
}  // namespace tidemark::gui::live_set_panel_test
