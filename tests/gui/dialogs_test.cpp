// What opens over everything: search, notes, help, the dialog that saves a session, and the line
// that says what happened.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"
#include "tests/gui/reader.h"
#include "tests/support/own_folder.h"

namespace tidemark::gui::dialogs_test {
namespace {

class Dialogs : public testing::Test {
 protected:
  void SetUp() override { robot_.open(synthetic(4)); }
  Reader robot_;
};

class Searching : public Dialogs {
 protected:
  void SetUp() override {
    robot_.open(synthetic(40));
    robot_.press(Key::Slash);
    robot_.frames(1);
  }
};

TEST_F(Searching, ListsOpsThenTensorsWithWhatTheyAre) {
  EXPECT_TRUE(robot_.says("Enter goes to the chosen one, Esc closes"));
  robot_.type("1.gelu7");
  EXPECT_EQ(robot_.view.facts.search_hits, 2u);
  EXPECT_TRUE(robot_.says("2 found"));
  EXPECT_TRUE(robot_.says("op, gelu"));
  EXPECT_TRUE(robot_.says("tensor, 1.00 KiB"));
}

TEST_F(Searching, ArrowsChooseAndEnterGoesThere) {
  robot_.type("1.gelu7");
  robot_.press(Key::Up);
  EXPECT_EQ(robot_.view.search_choice, 0u);
  robot_.press(Key::Down);
  EXPECT_EQ(robot_.view.search_choice, 1u);
  robot_.press(Key::Down);
  EXPECT_EQ(robot_.view.search_choice, 1u);  // the last
  robot_.press(Key::Enter);
  EXPECT_FALSE(robot_.view.shows_search);
  EXPECT_EQ(robot_.view.selection.buffer, BufferId{27});
  EXPECT_EQ(robot_.view.selection.op, static_cast<OpId>(27));
}

TEST_F(Searching, AnOpIsItsFirstRun) {
  robot_.type("1.gelu7");
  robot_.press(Key::Enter);
  EXPECT_EQ(robot_.view.selection.run, RunId{27});
}

TEST_F(Searching, TypingBeginsAtTheFirstAgain) {
  robot_.type("gelu1");
  robot_.press(Key::Down);
  robot_.press(Key::Down);
  EXPECT_EQ(robot_.view.search_choice, 2u);
  robot_.type("7");
  EXPECT_EQ(robot_.view.search_choice, 0u);
}

TEST_F(Searching, AClickChooses) {
  robot_.type("1.gelu7");
  robot_.move_to("op, gelu");
  const Drawn line = *robot_.drawn().find("op, gelu");
  robot_.click(450, std::floor(line.box.y0) + 6);
  EXPECT_EQ(robot_.view.selection.run, RunId{27});
  EXPECT_FALSE(robot_.view.shows_search);
}

// 120 ops and as many tensors: two hundred are listed.
TEST(SearchingMany, TheRestIsCounted) {
  Reader robot;
  robot.open(synthetic(120));
  robot.view.shows_search = true, robot.view.search = "gelu";
  robot.frames(4);
  EXPECT_TRUE(robot.says("240 found"));
  EXPECT_EQ(robot.model.search().hits().size(), 200u);
}

// The input of the step is alive in no state: it has no buffer here.
TEST_F(Searching, WhatHasNoMemoryIsTold) {
  robot_.type("x");
  ASSERT_EQ(robot_.view.facts.search_hits, 1u);
  robot_.press(Key::Enter);
  EXPECT_EQ(robot_.view.notice, "x has no memory of its own in this step");
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

class NotesPanel : public Dialogs {
 protected:
  void SetUp() override {
    Dialogs::SetUp();
    robot_.view.notes = {Note{.moment = 4000, .step = 8000, .text = "later"},
                         Note{.moment = 1500, .step = 8000, .text = "here"},
                         Note{.moment = 1, .step = 2, .text = "elsewhere", .file = "other"}};
    robot_.open_tab(Tab::Notes);
  }
  std::string row(int i) const {
    const float y = robot_.view.facts.first_note - 2 + 19 * static_cast<float>(i);
    return robot_.drawn().line_in({0, y, 940, y + 18});
  }
  void click_in_row(int i, float x) {
    robot_.click(x, std::floor(robot_.view.facts.first_note) + 6 + 19 * static_cast<float>(i));
  }
};

TEST_F(NotesPanel, ListsThemByMomentWithWhatIsAlive) {
  EXPECT_EQ(row(0), "1.50 µs | 2.00 KiB | here | edit | delete");
  EXPECT_EQ(row(1), "4.00 µs | 4.00 KiB | later | edit | delete");
  EXPECT_TRUE(robot_.says("1 note about other recordings"));
  EXPECT_EQ(robot_.view.facts.notes, 2u);
}

TEST_F(NotesPanel, AClickPutsTheCursorThere) {
  click_in_row(0, 300);
  EXPECT_EQ(robot_.view.cursor_time, 1500);
  EXPECT_EQ(robot_.view.cursor, 2u);
}

TEST_F(NotesPanel, OneIsDeletedAndTakenBack) {
  click_in_row(0, 905);
  ASSERT_EQ(robot_.view.notes.size(), 2u);
  EXPECT_EQ(robot_.view.notes[0].text, "later");
  EXPECT_EQ(robot_.view.notes[1].text, "elsewhere");
  robot_.model.undo(robot_.view);
  EXPECT_EQ(robot_.view.notes.size(), 3u);
}

TEST_F(NotesPanel, OneIsWrittenAnew) {
  click_in_row(1, 856);
  ASSERT_TRUE(robot_.view.edited_note);
  EXPECT_EQ(robot_.view.edited_note->index, 0u);
  robot_.frames(2);
  EXPECT_TRUE(robot_.says("at 4.00 µs"));
  robot_.type(" still");
  robot_.press(Key::Enter);
  EXPECT_FALSE(robot_.view.edited_note);
  EXPECT_NE(robot_.view.notes[0].text.find("still"), std::string::npos);
  EXPECT_EQ(robot_.view.notes.size(), 3u);
}

TEST_F(NotesPanel, WhatIsEscapedIsNotKept) {
  click_in_row(1, 856);
  robot_.frames(2);
  robot_.type("nothing of this");
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.edited_note);
  EXPECT_EQ(robot_.view.notes[0].text, "later");
}

TEST(HelpWindow, ListsTheKeysAndClosesByItsCross) {
  Reader robot;
  robot.view.shows_help = true;
  robot.frames(3);
  EXPECT_EQ(robot.line_of("W  S"), "W  S | zoom in, zoom out");
  EXPECT_EQ(robot.line_of("Shift + click"), "Shift + click | range from the cursor to here");
  // 46 letters wide, 36 high, in the middle of 1280 by 800.
  const float em = 14;
  robot.click(640 + 23 * em - 10, 400 - 18 * em + 10);
  EXPECT_FALSE(robot.view.shows_help);
}

class SavingASession : public Dialogs {
 protected:
  void SetUp() override {
    Dialogs::SetUp();
    folder_ = own_folder() + "/";
  }
  void ask_for(const std::string& name, bool is_refused = false) {
    robot_.view.saving = SaveDialog{folder_ + name, is_refused};
    robot_.view.focuses_saving = true;
    robot_.frames(3);
  }
  std::string folder_;
};

TEST_F(SavingASession, EnterSavesWithTheEndingOfSessions) {
  ask_for("mine");
  EXPECT_TRUE(robot_.says("inputs, files, the view and notes; Enter saves, Esc does not"));
  EXPECT_FALSE(robot_.says("Replace it"));
  robot_.press(Key::Enter);
  robot_.frames(1);
  EXPECT_FALSE(robot_.view.saving);
  EXPECT_EQ(robot_.view.session_path, folder_ + "mine.session.json");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "mine.session.json"));
  EXPECT_EQ(robot_.view.notice, "saved " + folder_ + "mine.session.json");
}

TEST_F(SavingASession, EscapeDoesNot) {
  ask_for("mine");
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.saving);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SavingASession, WhatIsThereIsReplacedOnlyWhenThatIsSaid) {
  const std::string path = folder_ + "theirs.session.json";
  write_file(path, "theirs");
  ask_for("theirs.session.json");
  robot_.press(Key::Enter);
  robot_.frames(2);
  ASSERT_TRUE(robot_.view.saving);
  EXPECT_TRUE(robot_.view.saving->is_refused);
  EXPECT_EQ(read_file(path, FileKind::Settings), "theirs");
  EXPECT_TRUE(robot_.says("Save as "));
  robot_.click_on("Replace it");
  robot_.frames(2);
  EXPECT_FALSE(robot_.view.saving);
  EXPECT_NE(read_file(path, FileKind::Settings), "theirs");
}

TEST_F(SavingASession, OrTakesAFreeNameBesideIt) {
  const std::string path = folder_ + "theirs.session.json";
  write_file(path, "theirs");
  ask_for("theirs.session.json", true);
  robot_.click_on("Save as ");
  robot_.frames(2);
  EXPECT_EQ(read_file(path, FileKind::Settings), "theirs");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "theirs-2.session.json"));
}

TEST(EmptyWindow, SaysWhatCanBeDone) {
  Reader robot;
  robot.frames(2);
  EXPECT_TRUE(robot.says("Nothing is open."));
  EXPECT_TRUE(robot.drawn().mentions("Drop a timeline, snapshot, config.json, trace or session"));
  EXPECT_FALSE(robot.says("Or start with a model:"));
  robot.view.notice = "something happened";
  robot.frames(2);
  const Drawing drawing = robot.drawn();
  const Drawn* notice = drawing.find("something happened");
  ASSERT_TRUE(notice);
  EXPECT_NEAR((notice->box.x0 + notice->box.x1) / 2, 640, 1);
  EXPECT_GT(notice->box.y0, 800 - 2.4F * 14);
}

}  // namespace
}  // namespace tidemark::gui::dialogs_test
