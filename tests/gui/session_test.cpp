// Sessions: all choices come back, nothing is written over what is not ours, and what is wrong with
// a file is said with its place.
#include "gui/session.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"
#include "gui/session_text.h"
#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"
#include "tests/support/own_folder.h"

namespace tidemark::gui::session_test {
namespace {

using testing::HasSubstr;

std::string problem_of(const std::string& text) {
  try {
    read_session_text(text, "a.session.json");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

// Inputs as the command line has them are the command line's to test; here a name stands for them.
void teach(ViewModel& model) {
  model.lasting_command_of = [](const WhatIf& inputs) {
    return "batch " + std::to_string(inputs.scenario.step.batch);
  };
  model.inputs_typed = [](const std::string& command) {
    return vit({"vanilla"}, std::stoi(command.substr(6)));
  };
}

class ASession : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    teach(robot_.model);
    robot_.ask(vit({"vanilla"}));
  }
  void press_with_control(Robot& robot, Key key) {
    robot.input.keys = {Key::Control, key};
    robot.frames(1);
    robot.input.keys.clear();
    robot.frames(2);
  }

  std::string folder_ = own_folder();
  std::string path_ = folder_ + "/a.session.json";
  Robot robot_;
};

TEST_F(ASession, IsAllThereAgain) {
  ViewState& view = robot_.view;
  view.visible = {0.25 * view.end, 0.5 * view.end};
  view.bytes = Range{0, 1e9};
  view.range = Range{0.3 * view.end, 0.4 * view.end};
  put_cursor(robot_.shown(), 40, view);
  select_run(robot_.shown(), RunId{10}, view);
  view.color_by = ColorBy::Task, view.curve.by = CurveBy::Module;
  view.curve.hidden.set(static_cast<std::size_t>(Category::Gradient));
  view.theme = ThemeChoice::Light, view.measure = Measure::Reserved;
  view.aligns_phases = true;
  view.live_filter = "mlp", view.open_groups = {"blocks.*.mlp"}, view.groups_blocks = false;
  view.notes = {{1000, robot_.shown().end(), "here", ""}};
  robot_.model.keep(view);
  write_session(path_, robot_.model, view);

  Robot again;
  teach(again.model);
  open_session_file(path_, again.model, again.view);
  again.frames(3);
  EXPECT_EQ(again.view.notice, "");
  EXPECT_FALSE(again.view.opening);
  EXPECT_EQ(again.model.recordings().size(), 2u);
  EXPECT_EQ(again.view.against, 1u);
  EXPECT_EQ(again.view.visible, view.visible);
  EXPECT_EQ(again.view.bytes, view.bytes);
  EXPECT_EQ(again.view.range, view.range);
  EXPECT_EQ(again.view.cursor_time, view.cursor_time);
  EXPECT_EQ(again.view.selection, view.selection);
  EXPECT_EQ(again.view.color_by, view.color_by);
  EXPECT_EQ(again.view.curve, view.curve);
  EXPECT_EQ(again.view.theme, view.theme);
  EXPECT_TRUE(again.view.aligns_phases);
  EXPECT_EQ(again.view.measure, view.measure);
  EXPECT_EQ(again.view.live_filter, view.live_filter);
  EXPECT_EQ(again.view.open_groups, view.open_groups);
  EXPECT_EQ(again.view.groups_blocks, view.groups_blocks);
  EXPECT_EQ(again.view.notes, view.notes);
  // And writing it again changes nothing.
  const std::string before = read_file(path_, FileKind::Check);
  write_session(path_, again.model, again.view);
  EXPECT_EQ(read_file(path_, FileKind::Check), before);
}

TEST_F(ASession, FindsItsFilesFromItsFolder) {
  const std::string file = folder_ + "/step.timeline.json";
  write_recording(file, recorded(small_trace(), "vanilla"));
  robot_.model.open(file, Opening::Compared);
  robot_.frames(3);
  robot_.view.notes = {{1, 2, "of the file", file}};
  write_session(path_, robot_.model, robot_.view);
  EXPECT_THAT(read_file(path_, FileKind::Check), HasSubstr("\"files\": [\"step.timeline.json\"]"));
  const Session read = read_session(path_);
  EXPECT_THAT(read.files, testing::ElementsAre(file));
  EXPECT_EQ(read.view.notes[0].file, file);
}

TEST_F(ASession, IsSavedUnderAnotherNameThanWhatIsThere) {
  write_file(path_, "somebody's");
  press_with_control(robot_, Key::S);
  ASSERT_TRUE(robot_.view.saving);
  robot_.view.saving->name = path_;
  robot_.view.wants_session = path_;
  robot_.frames(1);
  ASSERT_TRUE(robot_.view.saving && robot_.view.saving->is_refused);
  EXPECT_EQ(read_file(path_, FileKind::Check), "somebody's");
  robot_.view.wants_session = path_, robot_.view.replaces_session = true;
  robot_.frames(1);
  EXPECT_FALSE(robot_.view.saving);
  EXPECT_EQ(robot_.view.notice, "saved " + path_);
  // From now on Ctrl + S asks nothing, until somebody else changes the file.
  press_with_control(robot_, Key::S);
  EXPECT_FALSE(robot_.view.saving);
  write_file(path_, "edited");
  press_with_control(robot_, Key::S);
  EXPECT_TRUE(robot_.view.saving && robot_.view.saving->is_refused);
  EXPECT_EQ(read_file(path_, FileKind::Check), "edited");
}

TEST_F(ASession, ThatCannotBeWrittenIsToldAndLosesNothing) {
  robot_.view.wants_session = folder_ + "/no/such/folder.session.json";
  robot_.view.notes = {{1, 2, "kept", ""}};
  robot_.frames(1);
  EXPECT_THAT(robot_.view.notice, HasSubstr("cannot write"));
  EXPECT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(robot_.view.session_path, "");
}

TEST_F(ASession, WithoutItsFileOpensWhatIsThere) {
  write_file(path_,
             R"({"tidemark_session": 1, "command": "batch 8", "files": ["gone.timeline.json"],
    "view": {"shown": "nobody", "curve": "tensor"}})");
  Robot again;
  teach(again.model);
  open_session_file(path_, again.model, again.view);
  again.frames(3);
  EXPECT_THAT(again.view.notice, HasSubstr("gone.timeline.json"));
  EXPECT_EQ(again.model.recordings().size(), 1u);
  EXPECT_EQ(again.view.curve.by, CurveBy::Tensor);
}

TEST_F(ASession, WithoutAViewShowsTheFirst) {
  write_file(path_, R"({"tidemark_session": 1, "command": "batch 8"})");
  Robot again;
  teach(again.model);
  open_session_file(path_, again.model, again.view);
  again.frames(3);
  EXPECT_EQ(again.view.notice, "");
  EXPECT_EQ(again.view.shown, 0u);
}

TEST_F(ASession, OfTheLastWindowIsOfferedInTheEmptyOne) {
  keep_last_session(path_, robot_.model, robot_.view);
  Robot again;
  teach(again.model);
  again.view.last_session = std::make_shared<const Session>(read_session(path_));
  again.frames(2);
  ASSERT_GT(again.view.facts.last_session, 0);
  again.click(640, again.view.facts.last_session + 8);
  again.frames(2);
  EXPECT_EQ(again.model.recordings().size(), 1u);
}

TEST_F(ASession, OfTheLastWindowIsNotWrittenOverWhatCannotBeRead) {
  for (const char* text : {"somebody's", R"({"tidemark_session": 2})"}) {
    write_file(path_, text);
    keep_last_session(path_, robot_.model, robot_.view);
    EXPECT_EQ(read_file(path_, FileKind::Check), text);
  }
}

TEST_F(ASession, ThatIsDamagedLeavesTheWindowAsItIs) {
  robot_.view.notes = {{1, 2, "mine", ""}};
  write_session(path_, robot_.model, robot_.view);
  const std::string whole = read_file(path_, FileKind::Check);
  const std::string other = folder_ + "/cut.session.json";
  write_file(other, whole.substr(0, whole.size() / 2));
  robot_.input.drops = {other};
  robot_.frames(1);
  EXPECT_THAT(robot_.view.notice, HasSubstr("cut.session.json"));
  EXPECT_EQ(robot_.model.recordings().size(), 1u);
  EXPECT_EQ(robot_.view.notes.size(), 1u);
  EXPECT_EQ(robot_.view.session_path, path_);
}

TEST(SessionText, SaysPlaceAndRemedy) {
  EXPECT_THAT(problem_of(R"({"tidemark_session": 2})"),
              HasSubstr("a.session.json: /tidemark_session: this is version 2"));
  EXPECT_THAT(problem_of(R"({"tidemark_session": 1, "note": []})"), HasSubstr("notes"));
  EXPECT_THAT(problem_of(R"({"tidemark_session": 1, "view": {"curve": "tensr"}})"),
              testing::AllOf(HasSubstr("/view/curve"), HasSubstr("tensor")));
  EXPECT_THAT(problem_of(R"({"tidemark_session": 1, "view": {"range_ns": [5, 5]}})"),
              HasSubstr("/view/range_ns"));
  EXPECT_THAT(problem_of(R"({"tidemark_session": 1, "notes": [{"at_ns": 3, "of_ns": 2}]})"),
              HasSubstr("/notes/0/at_ns"));
  EXPECT_THAT(problem_of(R"({"tidemark_session": 1, "plan": {"budget_bytes": 5}})"),
              HasSubstr("\"command\" has to predict one"));
  EXPECT_EQ(problem_of(R"({"tidemark_session": 1})"), "");
}

}  // namespace
}  // namespace tidemark::gui::session_test
