// Notes and bookmarks: written, found, jumped to, changed, taken back and exported.
#include "gui/notes.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::notes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WithNotes : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"vanilla"})); }

  void press_with(Key modifier, Key key) {
    robot_.input.keys = {modifier, key};
    robot_.frames(1);
    robot_.input.keys.clear();
    robot_.frames(1);
  }
  void write(const std::string& text) {
    robot_.press(Key::N);
    robot_.type(text);
    robot_.press(Key::Enter);
  }

  Robot robot_;
};

TEST(Notes, KeepTheirShareOfAStepThatOtherInputsMakeLonger) {
  const Opened opened(synthetic(4));  // 8 us
  EXPECT_EQ(moment_in(opened, {.moment = 3000, .step = 8000}), 3000);
  EXPECT_EQ(moment_in(opened, {.moment = 3000, .step = 16000}), 1500);
}

TEST(Notes, AreFoundByMomentAndRecordingAndFromTheLastGoToTheFirst) {
  const Opened opened(synthetic(4));
  const NoteList notes = {{5000, 8000, "late"}, {1000, 8000, "early"}, {2000, 8000, "other", "f"}};
  EXPECT_THAT(notes_about(notes, ""), ElementsAre(1, 0));
  EXPECT_EQ(next_note(notes, "", opened, 1000, true), 0u);
  EXPECT_EQ(next_note(notes, "", opened, 5000, true), 1u);
  EXPECT_EQ(next_note(notes, "", opened, 1000, false), 0u);
  EXPECT_EQ(next_note(notes, "nobody", opened, 0, true), std::nullopt);
}

// Forward makes 1 KiB a microsecond: 3 KiB are there from 2 us on.
TEST(Notes, AreExportedAsATable) {
  const Opened opened(synthetic(4));
  const std::string text = notes_as_markdown({{2000, 8000, "a | b\nc"}, {500, 8000}}, "", opened);
  EXPECT_THAT(text, HasSubstr("| 500 ns | 1.00 KiB | forward of block0.gelu0 | bookmark |\n"
                              "| 2.00 µs | 3.00 KiB | forward of block0.gelu2 | a \\| b c |\n"));
}

TEST_F(WithNotes, NWritesOneWhereTheMouseIsAndEscapeGivesItUp) {
  robot_.move(robot_.middle(), robot_.curve());
  const double moment = *robot_.view.hover;
  write("the logits");
  ASSERT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(robot_.view.notes[0], (Note{moment, robot_.shown().end(), "the logits", ""}));
  EXPECT_EQ(robot_.view.facts.note_marks, 1u);
  robot_.press(Key::N);
  robot_.type("nothing");
  robot_.press(Key::Escape);
  EXPECT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_FALSE(robot_.view.edited_note);
}

TEST_F(WithNotes, BSetsABookmarkAndTakesItAway) {
  robot_.move(robot_.middle(), robot_.curve());
  robot_.press(Key::B);
  ASSERT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(robot_.view.notes[0].text, "");
  robot_.press(Key::B);
  EXPECT_TRUE(robot_.view.notes.empty());
}

TEST(Notes, OfAStepInWhichNothingHappensHaveAMoment) {
  Robot robot;
  Recording nothing;
  nothing.source = Source::Measured;
  nothing.device = "unknown";
  nothing.trace = std::make_shared<const Trace>();
  robot.open(std::move(nothing));
  robot.press(Key::B);
  ASSERT_EQ(robot.view.notes.size(), 1u);
  EXPECT_EQ(moment_in(robot.shown(), robot.view.notes[0]), 0);
  EXPECT_GE(robot.view.notes[0].step, 1);  // as a session that is read asks for
}

TEST_F(WithNotes, JGoesRoundThem) {
  for (const int shift : {-100, 100}) {
    robot_.move(robot_.middle() + static_cast<float>(shift), robot_.curve());
    robot_.press(Key::B);
  }
  robot_.move(-1, -1);
  robot_.view.cursor_time = 0;
  const auto at = [&](std::size_t note) { return robot_.view.notes[note].moment; };
  robot_.press(Key::J);
  EXPECT_EQ(robot_.view.cursor_time, at(0));
  robot_.press(Key::J);
  EXPECT_EQ(robot_.view.cursor_time, at(1));
  robot_.press(Key::J);
  EXPECT_EQ(robot_.view.cursor_time, at(0));
  press_with(Key::Shift, Key::J);
  EXPECT_EQ(robot_.view.cursor_time, at(1));
}

TEST_F(WithNotes, AreStepsOfTheOneHistory) {
  write("first");
  ++robot_.view.gesture;
  WhatIf changed = *robot_.model.what_if();
  changed.scenario.step.batch = 16;
  robot_.model.ask(changed, robot_.view);
  write("second");
  press_with(Key::Control, Key::Z);
  ASSERT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(robot_.model.what_if()->scenario.step.batch, 16);
  press_with(Key::Control, Key::Z);
  EXPECT_EQ(robot_.model.what_if()->scenario.step.batch, 8);
  press_with(Key::Control, Key::Z);
  EXPECT_TRUE(robot_.view.notes.empty());
  for (int i = 0; i < 3; ++i) press_with(Key::Control, Key::Y);
  EXPECT_EQ(robot_.view.notes.size(), 2u);
  EXPECT_EQ(robot_.model.what_if()->scenario.step.batch, 16);
}

}  // namespace
}  // namespace tidemark::gui::notes_test
