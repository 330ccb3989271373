// Ten thousand events of hands that know nothing: whatever they do, what is shown stays possible.
#include <random>

#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::monkey_test {
namespace {

constexpr int events_per_seed = 10'000;
// Hands are quicker than frames: some events fall into one.
constexpr int events_per_frame = 8;

class Monkey {
 public:
  explicit Monkey(std::uint64_t seed, PixelSize size) : robot(size), random_(seed) {}

  void act() {
    switch (draw(8)) {
      case 0:
      case 1:
        robot.input.x = static_cast<float>(draw(static_cast<std::uint64_t>(robot.size.width)));
        robot.input.y = static_cast<float>(draw(static_cast<std::uint64_t>(robot.size.height)));
        return;
      case 2:
        robot.input.buttons[draw(3)] = true;
        return;
      case 3:
        robot.input.buttons[draw(3)] = false;
        return;
      case 4:
        robot.input.wheel += static_cast<float>(draw(7)) - 3;
        return;
      case 5:
        robot.input.keys.insert(some_key());
        return;
      case 6:
        robot.input.keys.erase(some_key());
        return;
      default:
        robot.input.text += "fpckrz.,/mxh?5enbjt"[draw(19)];
    }
  }

  // What a frame asks for beside the window does not happen here: no files, no end.
  void frame() {
    robot.stage.frame(robot.model, robot.view, robot.input, robot.size);
    robot.view.wants_export.clear(), robot.view.export_path.clear();
    robot.view.wants_session.clear();
    robot.view.wants_to_close = false;
    robot.input.end_frame();
    if (draw(200) == 0)
      robot.size = {static_cast<int>(320 + draw(1400)), static_cast<int>(240 + draw(800))};
  }

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  Robot robot;

 private:
  Key some_key() { return key_names[draw(key_names.size())].value; }

  std::mt19937_64 random_;
};

void expect_possible(const ViewModel& model, const ViewState& view) {
  if (model.is_empty()) return;
  ASSERT_LT(view.shown, model.recordings().size());
  if (view.against) {
    ASSERT_LT(*view.against, model.recordings().size());
  }
  const Opened& opened = *model.shown(view);
  EXPECT_LT(view.cursor, opened.memory().states());
  EXPECT_GE(view.visible.begin, whole({view.end}).begin - 1);
  EXPECT_LE(view.visible.end, whole({view.end}).end + 1);
  EXPECT_GT(view.visible.span(), 0);
  if (view.range) {
    EXPECT_GE(view.range->begin, 0);
    EXPECT_LE(view.range->end, opened.end());
    EXPECT_GT(view.range->span(), 0);
  }
  if (view.bytes) {
    EXPECT_GE(view.bytes->begin, 0);
    EXPECT_GT(view.bytes->span(), 0);
  }
  const Selection& selection = view.selection;
  if (selection.run) {
    EXPECT_LT(index(*selection.run), opened.timeline().runs.size());
  }
  if (selection.buffer) {
    EXPECT_LT(index(*selection.buffer), opened.schedule().buffers.size());
  }
  if (selection.op != no_op) {
    EXPECT_LT(index(selection.op), opened.trace().ops.size());
  }
  EXPECT_LT(selection.block, static_cast<std::int32_t>(opened.trace().blocks.size()));
  EXPECT_LE(view.facts.columns, 2000u);
}

void play(Monkey& monkey) {
  for (int event = 0; event < events_per_seed; ++event) {
    monkey.act();
    if (event % events_per_frame != 0) continue;
    monkey.frame();
    // What a frame made of its inputs finds its place when the next one begins.
    if (!monkey.robot.model.is_empty()) monkey.robot.model.follow_axis(monkey.robot.view);
    expect_possible(monkey.robot.model, monkey.robot.view);
    if (testing::Test::HasFailure()) FAIL() << "after event " << event;
  }
}

class AMonkey : public testing::TestWithParam<std::uint64_t> {};

// Files: three small recordings, one of many runs.
TEST_P(AMonkey, LeavesRecordingsPossible) {
  Monkey monkey(GetParam(), {1280, 800});
  for (const char* strategy : {"vanilla", "pareprop", "checkpoint"})
    monkey.robot.open(recorded(small_trace(), strategy));
  monkey.robot.open(synthetic(5000));
  play(monkey);
}

// Inputs: every lever and slider is within reach.
TEST_P(AMonkey, LeavesPredictionsPossible) {
  Monkey monkey(GetParam(), {1280, 800});
  WhatIf what_if = vit({"vanilla"}, 2);
  what_if.scenario.model = find_model("vit-ti-16");
  monkey.robot.ask(what_if);
  play(monkey);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AMonkey, testing::Values(1, 20));

}  // namespace
}  // namespace tidemark::gui::monkey_test
