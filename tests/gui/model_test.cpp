// Which recordings are open, what they are called, and what becomes of them.
#include "gui/model.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::model_test {
namespace {

using testing::HasSubstr;

std::set<std::string> names_of(const ViewModel& model) {
  std::set<std::string> names;
  for (const OpenRecording& one : model.recordings()) names.insert(one.name);
  return names;
}

TEST(Names, NoTwoAreEqual) {
  Robot robot;
  robot.ask(vit({"vanilla", "vanilla"}));
  for (int i = 0; i < 3; ++i) robot.model.add(robot.shown().recording);
  robot.press(Key::K);
  robot.model.ask(vit({"vanilla"}, 16), robot.view);
  robot.press(Key::K);
  robot.model.ask(vit({"vanilla", "vanilla", "mesa"}, 16), robot.view);
  ASSERT_EQ(robot.model.recordings().size(), 8u);
  EXPECT_EQ(names_of(robot.model).size(), 8u);
}

TEST(Keep, NamesSayWhatWasKept) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  robot.press(Key::K);
  robot.model.ask(vit({"vanilla"}, 64), robot.view);
  robot.press(Key::K);
  EXPECT_THAT(robot.model.recordings()[1].name, HasSubstr("batch 8"));
  EXPECT_THAT(robot.model.recordings()[2].name, HasSubstr("batch 64"));
  EXPECT_EQ(robot.view.against, 2u);
}

TEST(Keep, TheSameTwiceIsKeptOnce) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  robot.press(Key::K);
  robot.press(Key::K);
  EXPECT_EQ(robot.model.recordings().size(), 2u);
  EXPECT_THAT(robot.view.notice, HasSubstr("kept already"));
}

TEST(Keep, AFileStaysAsItIsAnyway) {
  Robot robot;
  robot.open(synthetic(4));
  robot.press(Key::K);
  EXPECT_EQ(robot.model.recordings().size(), 1u);
  EXPECT_THAT(robot.view.notice, HasSubstr("only predictions change"));
}

TEST(Keep, TheReportStays) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  const Bytes reserved = robot.model.report_of(0)->reserved_peak;
  robot.press(Key::K);
  robot.model.ask(vit({"vanilla"}, 64), robot.view);
  ASSERT_TRUE(robot.model.report_of(1));
  EXPECT_EQ(robot.model.report_of(1)->reserved_peak, reserved);
}

class Closing : public testing::Test {
 protected:
  void SetUp() override {
    robot_.ask(vit({"vanilla"}));
    for (const std::size_t pairs : {4U, 8U, 2U}) robot_.model.add(synthetic(pairs));
    robot_.frames(1);
  }
  const Opened* at(std::size_t i) const { return robot_.model.recordings()[i].opened.get(); }

  Robot robot_;
};

TEST_F(Closing, OthersStayWhatTheyWere) {
  robot_.view.shown = 3, robot_.view.against = 2;
  const Opened* shown = at(3);
  const Opened* against = at(2);
  robot_.view.closes = 1;
  robot_.frames(1);
  EXPECT_EQ(robot_.model.recordings().size(), 3u);
  EXPECT_EQ(&robot_.shown(), shown);
  EXPECT_EQ(robot_.model.against(robot_.view), against);
}

TEST_F(Closing, WhatIsShownGivesWayToTheFirst) {
  robot_.view.shown = 2, robot_.view.against = 0;
  robot_.input.keys = {Key::Control};
  robot_.press(Key::W);
  EXPECT_EQ(robot_.model.recordings().size(), 3u);
  EXPECT_EQ(robot_.view.shown, 0u);
  EXPECT_FALSE(robot_.view.against);  // with itself
}

TEST_F(Closing, APredictionStaysAndSaysWhy) {
  robot_.input.keys = {Key::Control};
  robot_.press(Key::W);
  EXPECT_EQ(robot_.model.recordings().size(), 4u);
  EXPECT_THAT(robot_.view.notice, HasSubstr("prediction stays"));
}

TEST_F(Closing, TheLastFileLeavesAnEmptyWindow) {
  Robot robot;
  robot.open(synthetic(4));
  robot.view.closes = 0;
  robot.frames(2);
  EXPECT_TRUE(robot.model.is_empty());
  robot.open(synthetic(4));
  EXPECT_EQ(robot.view.shown, 0u);
}

// The list of what is open offers it, beside each that can be closed.
TEST_F(Closing, TheListHasAButton) {
  // A click beside the button chooses the line and folds the list: it is opened again.
  for (float y = 40; y < 130 && robot_.model.recordings().size() == 4; y += 6)
    for (float x = 280; x < 330 && robot_.model.recordings().size() == 4; x += 12) {
      if (!robot_.view.facts.has_open_list) robot_.click(200, 16);
      ASSERT_TRUE(robot_.view.facts.has_open_list);
      robot_.click(x, y);
    }
  EXPECT_EQ(robot_.model.recordings().size(), 3u);
}

TEST(Addresses, FollowTheArenaOfTheNextPrediction) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  robot.model.ask(vit({"vanilla"}, 64), robot.view);
  EXPECT_EQ(robot.view.addresses.end, robot.shown().recording.planned.count);
  // What was zoomed to stays, as far as there is anything.
  robot.view.addresses = {1e9, 2e9};
  robot.model.ask(vit({"mesa"}, 64), robot.view);
  EXPECT_EQ(robot.view.addresses, (Range{1e9, 2e9}));
  robot.model.ask(vit({"mesa"}, 1), robot.view);
  EXPECT_LE(robot.view.addresses.end,
            1.03 * static_cast<double>(robot.shown().recording.planned.count));
}

}  // namespace
}  // namespace tidemark::gui::model_test
