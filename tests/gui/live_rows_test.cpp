// What is alive, in groups: nothing is lost, sums are sums, and filters look at what is shown.
#include "gui/live_rows.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"

namespace tidemark::gui::live_rows_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class LiveRows : public testing::Test {
 protected:
  void SetUp() override {
    robot_.ask(vit({"vanilla"}));
    robot_.view.wanted_tab = Tab::LiveSet;
    robot_.frames(4);
  }
  const LiveSet& live() { return robot_.model.live().current(); }
  std::vector<LiveRow> rows(std::string_view filter, bool grouped) {
    const Nanoseconds now{static_cast<std::int64_t>(robot_.view.cursor_time)};
    return rows_of(robot_.shown(), live(), now, filter, grouped);
  }
  static Bytes sum(const std::vector<LiveRow>& rows) {
    Bytes all;
    for (const LiveRow& row : rows) all += row.bytes;
    return all;
  }

  Robot robot_;
};

TEST_F(LiveRows, GroupsLoseNothing) {
  const auto single = rows("", false), grouped = rows("", true);
  EXPECT_EQ(single.size(), live().largest.size());
  EXPECT_LT(grouped.size(), single.size() / 5);  // twelve blocks
  EXPECT_EQ(sum(grouped), sum(single));
  EXPECT_EQ(sum(grouped), live().bytes_listed);
  std::size_t members = 0;
  for (const LiveRow& row : grouped) members += row.is_group() ? row.members.size() : 1;
  EXPECT_EQ(members, single.size());
}

TEST_F(LiveRows, AGroupIsOneRoleOfAllBlocks) {
  const auto found = rows("blocks.3.mlp.fc1", true);
  ASSERT_FALSE(found.empty());
  for (const LiveRow& row : rows("", true)) {
    if (!row.is_group()) continue;
    Bytes all;
    Nanoseconds soonest = LiveRow::never;
    for (const BufferId member : row.members) {
      const LiveRow one = row_of(robot_.shown(), member,
                                 Nanoseconds{static_cast<std::int64_t>(robot_.view.cursor_time)});
      EXPECT_EQ(role_name(robot_.shown(), member), row.name);
      all += one.bytes;
      soonest = std::min(soonest, one.next_use);
    }
    EXPECT_EQ(row.bytes, all) << row.name;
    EXPECT_EQ(row.next_use, soonest) << row.name;
    EXPECT_THAT(row.name, HasSubstr("*"));
  }
}

TEST_F(LiveRows, AreFiltered) {
  for (const LiveRow& row : rows("MLP.fc1", false)) EXPECT_THAT(row.name, HasSubstr("mlp.fc1"));
  EXPECT_FALSE(rows("MLP.fc1", false).empty());
  for (const LiveRow& row : rows("optimizer_state", false))
    EXPECT_EQ(robot_.shown().schedule()[row.id].category, Category::OptimizerState);
  EXPECT_THAT(rows("no such tensor", true), IsEmpty());
}

TEST_F(LiveRows, AClickOpensAGroup) {
  const std::size_t closed = robot_.view.facts.live_rows;
  EXPECT_EQ(closed, rows("", true).size());
  for (float y = 600; y < 780 && robot_.view.open_groups.empty(); y += 18) robot_.click(400, y);
  ASSERT_EQ(robot_.view.open_groups.size(), 1u);
  EXPECT_GT(robot_.view.facts.live_rows, closed + 1);
}

// What the window is given instead of a recording.
std::optional<WhatIf> gpt2_or_nothing(const std::string& subject, const WhatIf*) {
  if (subject == "broken.json") throw InputError("broken.json: not a config");
  if (subject.ends_with(".timeline.json")) return std::nullopt;
  WhatIf what_if = vit({"vanilla"}, 2);
  what_if.scenario.model = find_model(subject == "config.json" ? "gpt2" : subject);
  return what_if;
}

TEST(Start, AModelIsPickedInTheEmptyWindow) {
  Robot robot;
  robot.model.inputs_of = gpt2_or_nothing;
  robot.frames(2);
  robot.click(60, 85);  // the first button
  ASSERT_FALSE(robot.model.is_empty());
  EXPECT_EQ(robot.model.what_if()->scenario.model.name, known_models().front().name);
}

TEST(Start, AConfigThatIsDroppedIsTheNewModel) {
  Robot robot;
  robot.model.inputs_of = gpt2_or_nothing;
  robot.ask(vit({"mesa"}));
  robot.input.drops = {"config.json"};
  robot.frames(2);
  EXPECT_EQ(robot.shown().trace().model, "gpt2");
  EXPECT_TRUE(robot.model.can_undo());
  robot.model.undo(robot.view);
  EXPECT_EQ(robot.shown().trace().model, "vit-b-16");
  robot.input.drops = {"broken.json"};
  robot.frames(2);
  EXPECT_EQ(robot.view.notice, "broken.json: not a config");
  EXPECT_EQ(robot.shown().trace().model, "vit-b-16");
}

}  // namespace
}  // namespace tidemark::gui::live_rows_test
