// What each key of the help does to the view and to the list of recordings, and what is said where
// it cannot do it.
#include <gmock/gmock.h>

#include <set>

#include "gui/keyboard.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::keys_test {
namespace {

class Keys : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"checkpoint"})); }

  void press_with_control(Key key) {
    robot_.input.keys = {Key::Control, key};
    robot_.frames(1);
    robot_.input.keys.clear();
    robot_.frames(1);
  }

  // Zoomed in, with the mouse outside, so that the eye is in the middle.
  void zoom_in() {
    robot_.view.visible = {0.2 * robot_.view.end, 0.4 * robot_.view.end};
    robot_.input.x = robot_.input.y = -1;
    robot_.frames(1);
  }

  Robot robot_;
};

// 1.5 of what is visible per second, 60 frames a second.
TEST_F(Keys, AAndDMoveByAFortiethOfWhatIsVisibleEachFrame) {
  for (const auto& [key, sign] : {std::pair(Key::A, -1), std::pair(Key::D, 1)}) {
    zoom_in();
    const Range before = robot_.view.visible;
    robot_.input.keys = {key};
    robot_.frames(1);
    EXPECT_NEAR(robot_.view.visible.begin - before.begin, sign * before.span() / 40, 1);
    EXPECT_NEAR(robot_.view.visible.span(), before.span(), 1);
  }
}

TEST_F(Keys, WAndSZoomAroundTheMiddleAndUndoEachOther) {
  zoom_in();
  const Range before = robot_.view.visible;
  robot_.input.keys = {Key::W};
  robot_.frames(1);
  const Range closer = robot_.view.visible;
  EXPECT_NEAR(closer.span(), before.span() * std::exp(-1.5 / 60), 1);
  EXPECT_NEAR(closer.begin + closer.end, before.begin + before.end, 2);
  robot_.input.keys = {Key::S};
  robot_.frames(1);
  EXPECT_NEAR(robot_.view.visible.span(), before.span(), 1);
}

TEST_F(Keys, ZWithoutARangeAndRWithoutASelectionDoNothing) {
  zoom_in();
  const Range before = robot_.view.visible;
  robot_.press(Key::Z);
  EXPECT_NEAR(robot_.view.visible.begin, before.begin, 1);
  EXPECT_NEAR(robot_.view.visible.end, before.end, 1);
  robot_.press(Key::R);
  EXPECT_FALSE(robot_.view.range);
}

TEST_F(Keys, PGoesToThePeakFromAnywhere) {
  robot_.view.cursor = 0, robot_.view.cursor_time = 0;
  robot_.press(Key::P);
  EXPECT_EQ(robot_.view.cursor, robot_.shown().peak());
}

TEST_F(Keys, KKeepsAPredictionOnceAndComparesWithIt) {
  const std::size_t before = robot_.model.recordings().size();
  robot_.press(Key::K);
  ASSERT_EQ(robot_.model.recordings().size(), before + 1);
  EXPECT_EQ(robot_.view.against, before);
  EXPECT_THAT(robot_.model.recordings().back().name, testing::StartsWith("kept 1, batch 8: "));
  robot_.view.against.reset();
  robot_.press(Key::K);
  EXPECT_EQ(robot_.model.recordings().size(), before + 1) << "kept twice";
  EXPECT_EQ(robot_.view.against, before);
  EXPECT_THAT(robot_.view.notice, testing::EndsWith(" is kept already"));
}

TEST_F(Keys, ControlWClosesWhatIsKeptAndNotThePrediction) {
  robot_.press(Key::K);
  const std::size_t kept = robot_.model.recordings().size() - 1;
  press_with_control(Key::W);  // shown is still the prediction
  EXPECT_EQ(robot_.model.recordings().size(), kept + 1);
  EXPECT_THAT(robot_.view.notice, testing::StartsWith("a prediction stays as long as its inputs"));
  robot_.view.shown = kept;
  robot_.frames(1);
  press_with_control(Key::W);
  EXPECT_EQ(robot_.model.recordings().size(), kept);
  EXPECT_EQ(robot_.view.shown, 0u);
  EXPECT_FALSE(robot_.view.against) << "compared with what is closed";
}

TEST(Help, NamesEachKeyOnceAndSaysWhatItDoes) {
  std::set<std::string_view> keys;
  for (const KeyHelp& row : key_help()) {
    EXPECT_TRUE(keys.insert(row.keys).second) << row.keys;
    EXPECT_FALSE(row.what.empty()) << row.keys;
  }
  for (const char* key : {"W  S", "A  D", "F", "P", ".  ,", "R", "Z", "C", "K", "/", "?",
                          "Ctrl + W", "Ctrl + Q", "Esc"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

}  // namespace
}  // namespace tidemark::gui::keys_test
