// Mouse and keys, and what they do to the view.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/gui/robot.h"

namespace tidemark::gui::hands_test {
namespace {

class Hands : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"pareprop"})); }

  double middle_of(RunId run) const {
    const TimedRun& timed = robot_.shown()[run];
    return static_cast<double>(timed.begin.count() + timed.end.count()) / 2;
  }

  Robot robot_;
};

TEST_F(Hands, FirstEverythingIsShownAndTheCursorIsAtThePeak) {
  EXPECT_EQ(robot_.view.visible, whole({robot_.shown().end()}));
  EXPECT_EQ(robot_.view.cursor, robot_.shown().peak());
  EXPECT_GT(robot_.view.facts.cells, 50u);
  EXPECT_GT(robot_.view.facts.columns, 100u);
  // Folded or not, all runs are there.
  EXPECT_EQ(robot_.view.facts.runs, robot_.shown().timeline().runs.size());
}

TEST_F(Hands, TheWheelZoomsAtTheMouse) {
  robot_.move(robot_.middle() + 100, robot_.curve());
  const double place = robot_.moment_at(robot_.input.x);
  const double span = robot_.view.visible.span();
  robot_.turn(3);
  EXPECT_NEAR(robot_.view.visible.span(), span * 0.512, 1);  // 0.8³
  EXPECT_NEAR(robot_.moment_at(robot_.input.x), place, 1);
  robot_.turn(-30);
  EXPECT_NEAR(robot_.view.visible.span(), span, 1);
}

TEST_F(Hands, ShiftAndWheelMove) {
  robot_.move(robot_.middle(), robot_.curve());
  robot_.turn(5);
  const Range before = robot_.view.visible;
  robot_.input.keys.insert(Key::Shift);
  robot_.turn(-1);
  EXPECT_NEAR(robot_.view.visible.begin, before.begin + 0.1 * before.span(), 1);
  EXPECT_NEAR(robot_.view.visible.span(), before.span(), 1);
}

TEST_F(Hands, ADragWithTheRightButtonMoves) {
  robot_.move(robot_.middle(), robot_.curve());
  robot_.turn(6);
  const double under_hand = robot_.moment_at(robot_.middle());
  robot_.drag(1, robot_.middle(), robot_.middle() + 80, robot_.curve());
  EXPECT_NEAR(robot_.moment_at(robot_.middle() + 80), under_hand, 1);
}

TEST_F(Hands, ADragWithTheLeftButtonIsARange) {
  const float x0 = robot_.middle(), x1 = x0 + 150;
  const double begin = robot_.moment_at(x0), end = robot_.moment_at(x1);
  robot_.drag(0, x0, x1, robot_.curve());
  ASSERT_TRUE(robot_.view.range);
  EXPECT_NEAR(robot_.view.range->begin, begin, 100);  // a pixel is 80 us
  EXPECT_NEAR(robot_.view.range->end, end, 100);
  robot_.press(Key::Z);
  EXPECT_LT(robot_.view.visible.span(), 1.3 * (end - begin));
  EXPECT_LT(robot_.view.visible.begin, begin);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.range);
}

TEST_F(Hands, ADragWithTheMiddleButtonZooms) {
  const float x0 = robot_.middle(), x1 = x0 + 150;
  const double begin = robot_.moment_at(x0), end = robot_.moment_at(x1);
  robot_.drag(2, x1, x0, robot_.curve());  // backwards: the same range
  EXPECT_NEAR(robot_.view.visible.begin, begin, 100);
  EXPECT_NEAR(robot_.view.visible.end, end, 100);
  EXPECT_FALSE(robot_.view.range);
}

TEST_F(Hands, AClickSelectsTheRunUnderTheMouse) {
  const RunId run{100};
  ASSERT_EQ(index(robot_.shown()[run].stream), 0u);
  robot_.click(robot_.x_of(middle_of(run)), robot_.lane());
  ASSERT_TRUE(robot_.view.selection.run);
  EXPECT_EQ(robot_.view.selection.op, robot_.shown().op_of(*robot_.view.selection.run));
  robot_.press(Key::Escape);
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

TEST_F(Hands, PeriodAndCommaGoToNeighbours) {
  robot_.view.selection.run = RunId{10};
  const TrackIndex& lane = robot_.shown().lanes()[0];
  const std::size_t here = robot_.shown().position_of(RunId{10});
  robot_.press(Key::Period);
  EXPECT_EQ(robot_.view.selection.run, RunId{lane.item_of(here + 1)});
  robot_.press(Key::Comma);
  robot_.press(Key::Comma);
  EXPECT_EQ(robot_.view.selection.run, RunId{lane.item_of(here - 1)});
  robot_.press(Key::R);
  ASSERT_TRUE(robot_.view.range);
  EXPECT_EQ(robot_.view.range->begin, static_cast<double>(lane.begin_of(here - 1)));
}

TEST_F(Hands, PeriodAndCommaStopAtTheEndsOfTheStream) {
  const TrackIndex& lane = robot_.shown().lanes()[0];
  const RunId first{lane.item_of(0)}, last{lane.item_of(lane.size() - 1)};
  robot_.view.selection.run = first;
  robot_.press(Key::Comma);
  EXPECT_EQ(robot_.view.selection.run, first);
  robot_.view.selection.run = last;
  robot_.press(Key::Period);
  EXPECT_EQ(robot_.view.selection.run, last);
}

TEST_F(Hands, PeriodWithoutASelectionTakesTheNextRunAfterTheCursor) {
  const TrackIndex& lane = robot_.shown().lanes()[0];
  const std::size_t next = lane.first_after(robot_.view.cursor_time);
  ASSERT_LT(next, lane.size());
  ASSERT_GT(next, 0u);
  robot_.press(Key::Period);
  EXPECT_EQ(robot_.view.selection.run, RunId{lane.item_of(next)});
}

TEST_F(Hands, RMakesTheLifeOfATensorTheRange) {
  const auto& events = robot_.shown().timeline().memory;
  const MemoryEvent born = events[events.size() / 2];
  ASSERT_TRUE(born.appears);
  const auto died = std::ranges::find_if(events, [&](const MemoryEvent& event) {
    return event.buffer == born.buffer && !event.appears;
  });
  ASSERT_NE(died, events.end());
  robot_.view.selection.buffer = born.buffer;
  robot_.press(Key::R);
  EXPECT_EQ(robot_.view.range, (Range{static_cast<double>(born.time.count()),
                                      static_cast<double>(died->time.count())}));

  // A parameter lives through the whole step.
  const auto& buffers = robot_.shown().recording.schedule.buffers;
  const auto persistent = std::ranges::find(buffers, true, &Buffer::persistent);
  robot_.view.selection = {};
  robot_.view.selection.buffer = static_cast<BufferId>(persistent - buffers.begin());
  robot_.press(Key::R);
  EXPECT_EQ(robot_.view.range, (Range{0, robot_.shown().end()}));
}

TEST_F(Hands, EscapeClosesHelpThenTheRangeThenTheSelection) {
  robot_.view.selection.run = RunId{10};
  robot_.view.range = Range{0, 1000};
  robot_.type("?");
  ASSERT_TRUE(robot_.view.shows_help);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.shows_help);
  EXPECT_TRUE(robot_.view.range);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.range);
  EXPECT_TRUE(robot_.view.selection.run);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.selection.run);
}

// Ctrl + W closes, so it must not zoom as well.
TEST_F(Hands, LettersWithControlDoNotMoveTheView) {
  const Range before = robot_.view.visible;
  robot_.input.keys = {Key::Control, Key::W};
  robot_.frames(3);
  EXPECT_EQ(robot_.view.visible, before);
  robot_.input.keys = {Key::W};
  robot_.frames(3);
  EXPECT_LT(robot_.view.visible.span(), before.span());
}

TEST_F(Hands, AClickOnTheCurvePutsTheCursorOnTheHighestMomentOfTheColumn) {
  const float x = std::floor(robot_.middle() + 37);
  const double from = robot_.moment_at(x), to = robot_.moment_at(x + 1);
  robot_.click(x + 0.5F, robot_.curve());
  EXPECT_EQ(robot_.view.cursor, robot_.shown().memory().highest_in(from, to));
  robot_.frames(2);
  EXPECT_EQ(robot_.model.live().current().state, robot_.view.cursor);
  EXPECT_EQ(robot_.model.live().current().bytes,
            robot_.shown().memory().total_of(robot_.view.cursor));
  robot_.press(Key::P);
  EXPECT_EQ(robot_.view.cursor, robot_.shown().peak());
}

TEST_F(Hands, TheMiniMapMovesTheView) {
  robot_.move(robot_.middle(), robot_.curve());
  robot_.turn(8);
  const float x =
      robot_.view.facts.left + 0.25F * (robot_.view.facts.right - robot_.view.facts.left);
  robot_.click(x, robot_.view.facts.mini_map + 10);
  const Range all = whole({robot_.shown().end()});
  const double centre = (robot_.view.visible.begin + robot_.view.visible.end) / 2;
  EXPECT_NEAR(centre, all.begin + 0.25 * all.span(), all.span() / 100);
  EXPECT_FALSE(robot_.view.range);
}

TEST_F(Hands, WasdMoveAndFFits) {
  const Range all = robot_.view.visible;
  robot_.input.keys.insert(Key::W);
  robot_.frames(60);  // one second
  robot_.input.keys.clear();
  EXPECT_NEAR(robot_.view.visible.span(), all.span() * std::exp(-1.5), all.span() / 1000);
  const double begin = robot_.view.visible.begin;
  robot_.input.keys.insert(Key::D);
  robot_.frames(6);
  robot_.input.keys.clear();
  EXPECT_GT(robot_.view.visible.begin, begin);
  robot_.press(Key::F);
  EXPECT_EQ(robot_.view.visible, all);
}

TEST_F(Hands, SearchFindsGoesThereAndCloses) {
  robot_.press(Key::Slash);
  EXPECT_TRUE(robot_.view.shows_search);
  robot_.frames(2);
  robot_.type("Blocks.7.MLP.GELU");
  EXPECT_GT(robot_.view.facts.search_hits, 0u);
  const Range before = robot_.view.visible;
  robot_.press(Key::Enter);
  EXPECT_FALSE(robot_.view.shows_search);
  ASSERT_TRUE(robot_.view.selection.op != no_op);
  EXPECT_EQ(robot_.shown().trace()[robot_.view.selection.op].name, "blocks.7.mlp.gelu");
  EXPECT_LT(robot_.view.visible.span(), before.span());
}

// Letters belong to the text field while one is typed in.
TEST_F(Hands, TypingDoesNotMoveTheView) {
  robot_.press(Key::Slash);
  robot_.frames(2);
  const Range before = robot_.view.visible;
  robot_.press(Key::W);
  robot_.frames(2);
  EXPECT_EQ(robot_.view.visible, before);
  EXPECT_EQ(robot_.view.search, "w");
}

TEST_F(Hands, QuestionMarkShowsHelp) {
  robot_.input.keys.insert(Key::Shift);
  robot_.press(Key::Slash);
  robot_.input.keys.clear();
  EXPECT_TRUE(robot_.view.shows_help);
  EXPECT_FALSE(robot_.view.shows_search);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.shows_help);
}

// On a German keyboard the slash is above the 7, the question mark right of the 0, and Z is where
// others have Y: signs are what is typed, wherever their keys are.
TEST_F(Hands, SignsAreTakenFromWhateverKeyTypesThem) {
  robot_.type("?");
  EXPECT_TRUE(robot_.view.shows_help);
  robot_.press(Key::Escape);
  robot_.view.range = Range{0, 1000};
  robot_.input.text = "z";
  robot_.frames(1);
  EXPECT_LT(robot_.view.visible.span(), 2000);
  robot_.type("/");
  EXPECT_TRUE(robot_.view.shows_search);
}

// What a keyboard sends while a key is held: the same letter every thirtieth of a second.
TEST_F(Hands, AHeldKeyIsOneCommand) {
  for (const Key key : {Key::C, Key::K, Key::Slash}) {
    robot_.input.keys = {key};
    robot_.frames(1);
    for (int repeat = 0; repeat < 7; ++repeat) {
      robot_.input.text = key == Key::C ? "c" : key == Key::K ? "k" : "?";
      robot_.frames(2);
    }
    robot_.input.keys.clear();
    robot_.frames(1);
  }
  EXPECT_EQ(robot_.view.color_by, ColorBy::Task);
  EXPECT_EQ(robot_.view.notice, "");  // to be kept already, for one
  EXPECT_FALSE(robot_.view.shows_help);
}

TEST_F(Hands, EscapeClosesAnOpenListAndNothingElse) {
  robot_.view.range = Range{0, 1000};
  robot_.click(300, 14);  // the recording that is shown
  EXPECT_TRUE(robot_.view.facts.has_open_list);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.facts.has_open_list);
  EXPECT_TRUE(robot_.view.range);
  robot_.press(Key::Escape);
  EXPECT_FALSE(robot_.view.range);
}

TEST_F(Hands, ControlQCloses) {
  robot_.press(Key::Q);
  EXPECT_FALSE(robot_.view.wants_to_close);
  robot_.input.keys.insert(Key::Control);
  robot_.press(Key::Q);
  EXPECT_TRUE(robot_.view.wants_to_close);
}

TEST_F(Hands, CChangesTheColors) {
  robot_.press(Key::C);
  EXPECT_EQ(robot_.view.color_by, ColorBy::Task);
  robot_.press(Key::C);
  EXPECT_EQ(robot_.view.color_by, ColorBy::Kind);
}

TEST_F(Hands, ADroppedFileOpensOrSaysWhatIsWrong) {
  const std::string path = testing::TempDir() + "dropped.timeline.json";
  write_recording(path, robot_.shown().recording);
  robot_.input.drops = {path};
  robot_.frames(2);
  EXPECT_EQ(robot_.model.recordings().size(), 2u);
  EXPECT_EQ(robot_.view.shown, 1u);
  robot_.input.drops = {"no-such.timeline.json"};
  robot_.frames(3);
  EXPECT_EQ(robot_.model.recordings().size(), 2u);
  EXPECT_THAT(robot_.view.notice, testing::HasSubstr("no-such.timeline.json"));
}

TEST_F(Hands, ExportsAreWrittenAndTold) {
  for (const char* ending : {".png", ".svg", ".chrome.json", ".timeline.json.zst"}) {
    const std::string path = testing::TempDir() + "export" + ending;
    std::filesystem::remove(path);
    robot_.view.wants_export = path;
    robot_.frames(1);
    EXPECT_EQ(robot_.view.notice, "wrote " + path);
  }
  robot_.view.wants_export = testing::TempDir() + "no-such-folder/x.png";
  robot_.frames(1);
  EXPECT_THAT(robot_.view.notice, testing::HasSubstr("no-such-folder"));
}

}  // namespace
}  // namespace tidemark::gui::hands_test
