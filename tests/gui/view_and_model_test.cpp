// What is selected, shown, opened and taken back, without a window: functions of the model and of
// the view, on recordings whose every number can be computed in the head.
#include <gmock/gmock.h>

#include "gui/model.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::view_and_model_test {
namespace {

using testing::ElementsAre;

// Four tensors of a KiB each come at 0, 1, 2 and 3 µs and go at 7.9, 6.9, 5.9 and 4.9 µs.
class ShownStep : public testing::Test {
 protected:
  ShownStep() { show_all(opened_, view_); }
  const Opened opened_{synthetic(4)};
  ViewState view_;
};

TEST_F(ShownStep, IsShownAsAWholeWithTheCursorAtItsPeak) {
  view_.selection.block = 0, view_.range = Range{1, 2}, view_.bytes = Range{1, 2};
  view_.cursor = 1;
  show_all(opened_, view_);
  EXPECT_EQ(view_.end, 8000);
  EXPECT_EQ(view_.visible, (Range{-160, 8160}));  // 2 % at both sides
  EXPECT_EQ(view_.addresses, (Range{0, 4096}));
  EXPECT_TRUE(view_.selection.is_empty());
  EXPECT_FALSE(view_.range);
  EXPECT_FALSE(view_.bytes);
  EXPECT_EQ(view_.cursor, 4u);
  EXPECT_EQ(view_.cursor_time, 3000);
}

TEST_F(ShownStep, TheCursorStandsWhereItsStateBegins) {
  put_cursor(opened_, 5, view_);
  EXPECT_EQ(view_.cursor, 5u);
  EXPECT_EQ(view_.cursor_time, 4900);
  put_cursor(opened_, 0, view_);
  EXPECT_EQ(view_.cursor_time, 0);
}

TEST_F(ShownStep, TheMapOfAddressesEndsAtAPage) {
  EXPECT_EQ(address_limits(opened_).end, 4096);
  EXPECT_EQ(address_limits(opened_).narrowest, 4096);
  Recording unknown = synthetic(4);
  unknown.planned = {};
  EXPECT_EQ(address_limits(Opened(unknown)).end, 1);
}

TEST_F(ShownStep, ANoteInSightMovesTheCursorAlone) {
  const Range before = view_.visible;
  show_note(opened_, {.moment = 1500, .step = 8000}, view_);
  EXPECT_EQ(view_.cursor, 2u);
  EXPECT_EQ(view_.cursor_time, 1500);
  EXPECT_EQ(view_.visible, before);
  view_.visible = {5000, 6000};
  show_note(opened_, {.moment = 1000, .step = 4000}, view_);  // a quarter of the step
  EXPECT_EQ(view_.cursor_time, 2000);
  EXPECT_EQ(view_.visible, (Range{1500, 2500}));
}

TEST_F(ShownStep, WhatBelongsToARunATensorAndAnOpIsSelectedWithIt) {
  select_run(opened_, RunId{6}, view_);
  EXPECT_EQ(view_.selection, (Selection{.run = RunId{6}, .op = static_cast<OpId>(1)}));
  select_buffer(opened_, BufferId{2}, view_);
  EXPECT_EQ(view_.selection, (Selection{.buffer = BufferId{2}, .op = static_cast<OpId>(2)}));
  select_op(static_cast<OpId>(3), view_);
  EXPECT_EQ(view_.selection, (Selection{.op = static_cast<OpId>(3)}));
}

TEST(BelongsTo, TheNarrowestOfWhatIsSelectedDecides) {
  const Opened opened(synthetic(40));  // blocks of twenty ops
  const auto belongs = [&](std::uint32_t buffer, const Selection& selection) {
    return belongs_to(opened, BufferId{buffer}, selection);
  };
  const Selection tensor{.buffer = BufferId{7}, .op = static_cast<OpId>(8)};
  EXPECT_TRUE(belongs(7, tensor));
  EXPECT_FALSE(belongs(8, tensor));
  const Selection op{.op = static_cast<OpId>(8), .category = Category::Activation};
  EXPECT_TRUE(belongs(8, op));
  EXPECT_FALSE(belongs(9, op));
  EXPECT_TRUE(belongs(9, {.category = Category::Activation}));
  EXPECT_FALSE(belongs(9, {.category = Category::Gradient}));
  EXPECT_TRUE(belongs(20, {.block = 1}));
  EXPECT_FALSE(belongs(19, {.block = 1}));
  EXPECT_TRUE(belongs(19, {.block = 0}));
  EXPECT_FALSE(belongs(19, {}));
}

// 40 times a run of 900 ns are 36 µs: more context than that is too much to read it.
class Reveal : public testing::Test {
 protected:
  Reveal() { show_all(opened_, view_); }
  Range revealed(const Selection& selection) {
    view_.selection = selection;
    reveal(opened_, view_);
    return view_.visible;
  }
  const Opened opened_{synthetic(40)};  // 80 µs, shown from −1.6 to 81.6
  ViewState view_;
};

TEST_F(Reveal, ZoomsInUntilARunCanBeRead) {
  EXPECT_EQ(revealed({.run = RunId{40}}), (Range{22'450, 58'450}));
  EXPECT_EQ(revealed({.run = RunId{1}}), (Range{-1600, 34'400}));  // at the margin
}

TEST_F(Reveal, MovesWithoutAChangeOfScale) {
  view_.visible = {60'000, 61'000};
  EXPECT_EQ(revealed({.run = RunId{40}}), (Range{39'950, 40'950}));
}

TEST_F(Reveal, LeavesWhatIsInSight) {
  view_.visible = {39'000, 42'000};
  EXPECT_EQ(revealed({.run = RunId{40}}), (Range{39'000, 42'000}));
  view_.visible = {40'100, 42'000};  // its begin is not
  EXPECT_EQ(revealed({.run = RunId{40}}), (Range{39'500, 41'400}));
}

TEST_F(Reveal, OfATensorGoesToItsWriterAndOfAnOpToItsFirstRun) {
  view_.visible = {60'000, 61'000};
  EXPECT_EQ(revealed({.buffer = BufferId{30}}), (Range{29'950, 30'950}));
  EXPECT_EQ(revealed({.op = static_cast<OpId>(20)}), (Range{19'950, 20'950}));
  EXPECT_EQ(revealed({}), (Range{19'950, 20'950}));
}

// Files whose names say how many pairs of runs they hold; "x" cannot be read.
Recording read(const std::string& path, ReadProgress*) {
  if (path == "x") throw InputError("x: not a timeline");
  return synthetic(std::stoul(path));
}

class OpenedFiles : public testing::Test {
 protected:
  void open(const std::string& path, Opening opening) {
    model_.open(path, opening);
    model_.loading().wait();
    problem_ = model_.take_opened(view_);
  }
  ViewModel model_{read};
  ViewState view_;
  std::string problem_;
};

TEST_F(OpenedFiles, AreShownOrCompared) {
  open("4", Opening::Compared);  // the first is shown in any case
  EXPECT_EQ(view_.shown, 0u);
  EXPECT_FALSE(view_.against);
  EXPECT_EQ(view_.end, 8000);
  open("2", Opening::Compared);
  EXPECT_EQ(view_.shown, 0u);
  EXPECT_EQ(view_.against, 1u);
  open("3", Opening::Compared);
  EXPECT_EQ(view_.against, 1u);
  EXPECT_EQ(view_.notice, "");
  open("5", Opening::Shown);
  EXPECT_EQ(view_.shown, 3u);
  EXPECT_FALSE(view_.against);
  EXPECT_EQ(view_.notice, "opened 5");
  EXPECT_EQ(model_.recordings()[3].path, "5");
}

TEST_F(OpenedFiles, WhatIsWrongIsTold) {
  open("x", Opening::Shown);
  EXPECT_EQ(problem_, "x: not a timeline");
  EXPECT_TRUE(model_.is_empty());
}

TEST_F(OpenedFiles, TheComparedOneIsDrawnFirstAndFourAtMost) {
  for (const char* path : {"1", "2", "3", "4", "5", "6"}) open(path, Opening::Compared);
  view_.shown = 1, view_.against = 3;
  const auto opened = [&](std::size_t i) { return model_.recordings()[i].opened.get(); };
  EXPECT_THAT(model_.overlaid(view_), ElementsAre(opened(3), opened(0), opened(2), opened(4)));
  view_.against.reset();
  EXPECT_THAT(model_.overlaid(view_), ElementsAre());
}

TEST_F(OpenedFiles, TheAxisGoesToTheEndOfTheLongest) {
  open("4", Opening::Shown);
  open("6", Opening::Compared);
  model_.follow_axis(view_);
  EXPECT_EQ(view_.end, 12'000);
  EXPECT_EQ(view_.visible, whole({12'000}));  // all that was shown before was all
  view_.visible = {11'000, 12'000};
  view_.aligns_phases = true;  // both are as long as the first then
  model_.follow_axis(view_);
  EXPECT_EQ(view_.end, 8000);
  EXPECT_EQ(view_.visible, (Range{7160, 8160}));
  view_.against.reset();
  model_.follow_axis(view_);
  EXPECT_EQ(view_.visible, (Range{7160, 8160}));
}

TEST_F(OpenedFiles, ClosingOneLeavesTheOthersWhatTheyAre) {
  for (const char* path : {"1", "2", "3", "4"}) open(path, Opening::Compared);
  view_.shown = 2, view_.against = 3;
  model_.close(0, view_);
  EXPECT_EQ(view_.shown, 1u);
  EXPECT_EQ(view_.against, 2u);
  model_.close(2, view_);
  EXPECT_FALSE(view_.against);
  EXPECT_EQ(view_.shown, 1u);
  model_.close(1, view_);
  EXPECT_EQ(view_.shown, 0u);
  EXPECT_EQ(view_.end, 4000);  // of the one with two pairs
}

class History : public testing::Test {
 protected:
  void note(const std::string& text) {
    NoteList notes = view_.notes;
    notes.push_back({.moment = 1, .step = 2, .text = text});
    model_.change_notes(std::move(notes), view_);
  }
  ViewModel model_;
  ViewState view_;
};

TEST_F(History, GoesBackAndForth) {
  EXPECT_FALSE(model_.can_undo());
  note("one"), note("two");
  model_.undo(view_);
  EXPECT_EQ(view_.notes.size(), 1u);
  EXPECT_TRUE(model_.can_redo());
  model_.redo(view_);
  EXPECT_EQ(view_.notes.size(), 2u);
  EXPECT_FALSE(model_.can_redo());
  model_.redo(view_);  // nothing
  EXPECT_EQ(view_.notes.size(), 2u);
  model_.undo(view_), model_.undo(view_), model_.undo(view_);
  EXPECT_TRUE(view_.notes.empty());
  EXPECT_FALSE(model_.can_undo());
}

TEST_F(History, WhatIsDoneAnewEndsWhatWasTakenBack) {
  note("one"), note("two");
  model_.undo(view_);
  note("three");
  EXPECT_FALSE(model_.can_redo());
  EXPECT_EQ(view_.notes.back().text, "three");
}

TEST_F(History, NoChangeIsNoStep) {
  model_.change_notes({}, view_);
  EXPECT_FALSE(model_.can_undo());
}

TEST_F(History, HasAThousandSteps) {
  for (int i = 0; i < 1003; ++i) note("n");
  int steps = 0;
  for (; model_.can_undo(); ++steps) model_.undo(view_);
  EXPECT_EQ(steps, 1000);
  EXPECT_EQ(view_.notes.size(), 3u);
}

}  // namespace
}  // namespace tidemark::gui::view_and_model_test
