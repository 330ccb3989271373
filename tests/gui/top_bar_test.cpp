// The row of buttons above everything: its lists, its menus, and that none is cut off.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::top_bar_test {
namespace {

class TopBar : public testing::Test {
 protected:
  void SetUp() override { robot_.open(synthetic(4)); }
  Reader robot_;
};

TEST_F(TopBar, ColorsAreChosenByRadioButtons) {
  EXPECT_EQ(robot_.view.color_by, ColorBy::Kind);
  robot_.click_on("task");
  EXPECT_EQ(robot_.view.color_by, ColorBy::Task);
  EXPECT_TRUE(robot_.says("backward"));
  robot_.click_on("kind");
  EXPECT_EQ(robot_.view.color_by, ColorBy::Kind);
}

TEST_F(TopBar, TheCurveHasAMenu) {
  robot_.click_on("Curve");
  EXPECT_TRUE(robot_.view.facts.has_open_list);
  robot_.click_on("by module");
  EXPECT_EQ(robot_.view.curve.by, CurveBy::Module);
  robot_.click_on("by tensor");
  EXPECT_EQ(robot_.view.curve.by, CurveBy::Tensor);
  robot_.click_on("what is persistent");
  EXPECT_TRUE(robot_.view.curve.hides_persistent);
  robot_.click_on("what is persistent");
  EXPECT_FALSE(robot_.view.curve.hides_persistent);
  // Of the categories those that there are.
  EXPECT_FALSE(robot_.says("gradient"));
  const Drawing drawing = robot_.drawn();
  for (const Drawn& one : drawing.texts)
    if (one.text == "activation" && one.box.y0 > 100 && one.box.y0 < 300 && one.box.x0 > 800)
      robot_.click(std::floor(one.box.x0) + 5, std::floor(one.box.y0) + 5);
  EXPECT_TRUE(robot_.view.curve.hidden[static_cast<std::size_t>(Category::Activation)]);
  EXPECT_EQ(robot_.view.curve.hidden.count(), 1u);
}

TEST_F(TopBar, ExportsAreNamedAfterTheStep) {
  robot_.click_on("Export");
  const std::string stem = "tidemark-synthetic-synthetic-batch-1";
  for (const char* ending : {".png", ".svg", ".chrome.json", ".timeline.json.zst"})
    EXPECT_TRUE(robot_.says(stem + ending)) << ending;
  EXPECT_FALSE(robot_.says(stem + ".notes.md"));
  robot_.press(Key::Escape);
  robot_.view.notes = {Note{.moment = 1, .step = 8000, .text = "x"}};
  robot_.click_on("Export");
  EXPECT_TRUE(robot_.says(stem + ".notes.md"));
  robot_.click_on("session ...");
  ASSERT_TRUE(robot_.view.saving);
  EXPECT_EQ(robot_.view.saving->name, stem + ".session.json");
  EXPECT_FALSE(robot_.view.saving->is_refused);
}

TEST_F(TopBar, FitShowsAllAgain) {
  robot_.view.visible = {1000, 2000};
  robot_.view.bytes = Range{0, 1000};
  robot_.frames(1);
  robot_.click_on("Fit");
  EXPECT_EQ(robot_.view.visible, whole({8000}));
  EXPECT_FALSE(robot_.view.bytes);
}

TEST_F(TopBar, SearchAndHelpAreButtonsToo) {
  robot_.click_on("Search");
  EXPECT_TRUE(robot_.view.shows_search);
  robot_.press(Key::Escape);
  robot_.click_on("?");
  EXPECT_TRUE(robot_.view.shows_help);
}

TEST_F(TopBar, RecordingsAreChosenFromLists) {
  robot_.open(synthetic(2));
  robot_.view.shown = 0;
  robot_.frames(2);
  const std::string second = "synthetic · synthetic · predicted for a100-80gb (2)";
  robot_.click_on("compare with nothing");
  robot_.click_on(second);
  EXPECT_EQ(robot_.view.against, 1u);
  EXPECT_TRUE(robot_.says("by phase"));
  robot_.click(340, 16);  // the list of B
  robot_.click_on("compare with nothing");
  EXPECT_FALSE(robot_.view.against);
  robot_.click(100, 16);
  robot_.click_on(second);
  EXPECT_EQ(robot_.view.shown, 1u);
  EXPECT_EQ(robot_.view.visible, whole({4000}));
}

TEST_F(TopBar, PhasesAreAlignedByACheckbox) {
  robot_.open(synthetic(2));
  robot_.view.shown = 0, robot_.view.against = 1;
  robot_.frames(2);
  robot_.click_on("by phase");
  EXPECT_TRUE(robot_.view.aligns_phases);
  EXPECT_EQ(robot_.view.end, 8000);
}

TEST_F(TopBar, AFileHasNoHistoryAndNoInputs) {
  EXPECT_FALSE(robot_.says("↶"));
  EXPECT_FALSE(robot_.says("What if"));
  robot_.press(Key::B);  // a note is a step of the history
  robot_.frames(1);
  EXPECT_TRUE(robot_.says("↶"));
  robot_.click_on("↶");
  EXPECT_TRUE(robot_.view.notes.empty());
  robot_.click_on("↷");
  EXPECT_EQ(robot_.view.notes.size(), 1u);
}

TEST_F(TopBar, KeysGoThroughTheHistoryAsItsArrowsDo) {
  const auto press = [&](std::set<Key> held, Key key) {
    robot_.input.keys = std::move(held);
    robot_.press(key);
    robot_.input.keys.clear();
    robot_.frames(1);
    return robot_.view.notes.size();
  };
  robot_.press(Key::B);
  ASSERT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(press({Key::Control}, Key::Z), 0u);
  EXPECT_EQ(press({Key::Control}, Key::Y), 1u);
  EXPECT_EQ(press({Key::Control}, Key::Z), 0u);
  EXPECT_EQ(press({Key::Control, Key::Shift}, Key::Z), 1u);
  EXPECT_EQ(press({}, Key::Z), 1u);  // zooms to a range, and there is none
}

TEST_F(TopBar, ANarrowWindowHasItsButtonsInARowOfTheirOwn) {
  const auto y = [&](std::string_view text) { return robot_.drawn().find(text)->box.y0; };
  EXPECT_EQ(y("vs"), y("Keep"));
  robot_.size = {820, 800};  // less than 60 letters
  robot_.frames(2);
  EXPECT_GT(y("Keep"), y("vs") + 10);
  EXPECT_FALSE(robot_.says("Color"));
}

// The lists of recordings take what the buttons leave, in windows of any width.
TEST(TopBarOfInputs, NoButtonIsCutOff) {
  Reader robot;
  robot.ask(vit({"vanilla", "mesa"}));
  for (const bool compares : {false, true})
    for (int width = 560; width < 1500; width += 47) {
      robot.view.against = compares ? std::optional<std::size_t>(1) : std::nullopt;
      robot.size = {width, 500};
      robot.frames(2);
      const Drawing drawing = robot.drawn();
      const Drawn* help = drawing.find("?");
      ASSERT_TRUE(help) << width;
      EXPECT_LE(help->box.x1, static_cast<float>(width) - 8 - 6) << width;  // its frame, the margin
      const float em = 14;
      EXPECT_EQ(drawing.says("Color"), static_cast<float>(width) - 16 > 72 * em) << width;
    }
}

TEST_F(TopBar, KeepOfAFileSaysThatItStaysAnyway) {
  robot_.click_on("Keep");
  EXPECT_TRUE(robot_.says(
      "synthetic · synthetic · predicted for a100-80gb stays as it is: only predictions change"));
  robot_.click(robot_.middle(), robot_.curve());
  EXPECT_EQ(robot_.view.notice, "");
}

}  // namespace
}  // namespace tidemark::gui::top_bar_test
