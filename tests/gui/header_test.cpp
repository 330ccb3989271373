// The numbers and choices above everything: equal to those of reports, and what was not asked is no
// chip.
#include "gui/header.h"

#include <gmock/gmock.h>

#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::header_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> texts(const std::vector<Chip>& chips) {
  std::vector<std::string> all;
  for (const Chip& chip : chips) all.push_back(chip.text);
  return all;
}

TEST(Header, SaysWhatTheReportSays) {
  const auto made = predict(vit({"vanilla"}, 64));
  const Report& report = made.front().report;
  const auto gauges = gauges_of(*made.front().opened, &report, nullptr);
  EXPECT_EQ(gauges[0].value, to_text(report.reserved_peak) + " of " + to_text(report.capacity));
  EXPECT_EQ(gauges[1].value, to_text(report.step));
  EXPECT_EQ(gauges[2].value, to_text(report.allocated_peak));
  EXPECT_EQ(gauges[3].value, to_text(report.live_peak));
  EXPECT_EQ(gauges[4].value, to_text(report.planned));
  for (const Gauge& gauge : gauges) {
    EXPECT_NE(gauge.meaning, "") << gauge.name;
    EXPECT_EQ(gauge.change, "") << gauge.name;
    EXPECT_FALSE(gauge.is_too_much) << gauge.name;
  }
}

TEST(Header, PrintsAChange) {
  Report before, now;
  before.reserved_peak = Bytes{std::int64_t{8} << 30};
  now.reserved_peak = Bytes{std::int64_t{30} << 30};
  now.capacity = Bytes{std::int64_t{24} << 30};
  before.step = now.step = Nanoseconds{1000};
  const auto made = predict(vit({"vanilla"}, 1));
  const auto gauges = gauges_of(*made.front().opened, &now, &before);
  EXPECT_EQ(gauges[0].value, "8.00 GiB → 30.0 GiB of 24.0 GiB");
  EXPECT_EQ(gauges[0].change, "+22.0 GiB");
  EXPECT_TRUE(gauges[0].is_more);
  EXPECT_TRUE(gauges[0].is_too_much);
  EXPECT_EQ(gauges[1].change, "");  // the same time
}

TEST(Header, ARecordingHasNoReport) {
  const Opened opened(recorded(small_trace(), "vanilla"));
  const auto gauges = gauges_of(opened, nullptr, nullptr);
  EXPECT_EQ(gauges.front().name, "live");
  EXPECT_THAT(gauges.front().value, HasSubstr(to_text(opened.memory().total_of(opened.peak()))));
  EXPECT_EQ(gauges.back().name, "step");
}

// A profile without memory, and without a batch.
TEST(Header, WhatNobodyRecordedIsUnknown) {
  Recording made = recorded(small_trace(), "vanilla");
  made.schedule.buffers.clear(), made.schedule.steps.clear(), made.schedule.operands.clear();
  made.timeline.runs.clear(), made.timeline.memory.clear(), made.timeline.baseline = {};
  auto trace = std::make_shared<Trace>(*made.trace);
  trace->step.batch = 0;
  made.trace = trace;
  made.capacity = made.planned = {};
  const Opened opened(made);
  EXPECT_EQ(gauges_of(opened, nullptr, nullptr).front().value, "unknown");
  EXPECT_THAT(texts(chips_of(made)), testing::Each(testing::Not(HasSubstr("batch"))));
  trace->step.batch = 6;
  EXPECT_THAT(texts(chips_of(made)), testing::Contains("batch 6"));
}

TEST(Header, NamesWhatIsNotTheDefault) {
  WhatIf what_if = vit({"vanilla"}, 1);
  EXPECT_THAT(chips_of(what_if), IsEmpty());
  what_if.scenario.step.batch = 64;
  what_if.scenario.step.precision = Precision::AmpBf16;
  what_if.scenario.device = find_device("l4");
  what_if.scenario.budget = Bytes{std::int64_t{20} << 30};
  what_if.strategies = {parse_strategy("mesa")};
  what_if.allocator = "expandable_segments:True";
  EXPECT_THAT(texts(chips_of(what_if)), ElementsAre("batch 64", "amp-bf16", "mesa", "l4",
                                                    "budget 20.0 GiB", "expandable_segments:True"));
}

TEST(Header, AChipIsChangedBack) {
  Robot robot;
  robot.ask(vit({"mesa"}, 1));
  // The only chip stands behind the numbers; its first entry is the default.
  for (float x = 940; x < 1200 && !robot.view.facts.has_open_list; x += 12) robot.click(x, 39);
  ASSERT_TRUE(robot.view.facts.has_open_list);
  const float x = robot.input.x;
  for (float y = 52; y < 80 && robot.model.what_if()->strategies.front().text == "mesa"; y += 6)
    robot.click(x + 10, y);
  EXPECT_EQ(robot.model.what_if()->strategies.front().text, "vanilla");
}

// The axis holds while a slider is dragged, the old curve stays, and one step back takes all of it.
TEST(Header, ADragIsOneChange) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 8));
  const Report before = *robot.model.report_of(0);
  const auto shown = robot.model.shown(robot.view);
  const double top = robot.view.curve_top;
  robot.move(120, 130);
  robot.hold(0);
  ASSERT_NE(robot.model.what_if()->scenario.step.batch, 8);
  robot.move(60, 130);
  const std::int64_t batch = robot.model.what_if()->scenario.step.batch;
  EXPECT_LT(batch, 8);
  EXPECT_GE(robot.view.curve_top, top);
  EXPECT_EQ(robot.model.before(), shown);
  EXPECT_EQ(robot.model.report_before()->allocated_peak, before.allocated_peak);
  robot.move(200, 130);
  EXPECT_EQ(robot.model.before(), shown);
  robot.release(0);
  EXPECT_EQ(robot.model.before(), shown);  // until hands do something else
  robot.click(robot.middle(), robot.curve());
  EXPECT_FALSE(robot.model.before());
  robot.model.undo(robot.view);
  EXPECT_EQ(robot.model.what_if()->scenario.step.batch, 8);
  EXPECT_EQ(robot.model.report_of(0)->allocated_peak, before.allocated_peak);
}

TEST(Header, EveryChoiceIsTakenBackAndMadeAgain) {
  Robot robot;
  robot.ask(vit({"vanilla"}, 1));
  std::vector<std::string> asked;
  for (const char* strategy : {"mesa", "checkpoint", "pareprop"}) {
    ++robot.view.gesture;
    robot.model.ask(vit({strategy}, 1), robot.view);
    asked.emplace_back(strategy);
  }
  const auto now = [&] { return robot.model.what_if()->strategies.front().text; };
  const auto press = [&](std::set<Key> keys) {
    robot.input.keys = std::move(keys);
    robot.frames(1);
    robot.input.keys.clear();
    robot.frames(1);
  };
  for (const char* expected : {"checkpoint", "mesa", "vanilla", "vanilla"}) {
    press({Key::Control, Key::Z});
    EXPECT_EQ(now(), expected);
  }
  EXPECT_FALSE(robot.model.can_undo());
  press({Key::Control, Key::Y});
  EXPECT_EQ(now(), "mesa");
  press({Key::Control, Key::Shift, Key::Z});
  EXPECT_EQ(now(), "checkpoint");
  EXPECT_EQ(robot.model.report_of(0)->strategy, "checkpoint");
  ++robot.view.gesture;
  robot.model.ask(vit({"mesa"}, 2), robot.view);
  EXPECT_FALSE(robot.model.can_redo());  // another way was taken
}

}  // namespace
}  // namespace tidemark::gui::header_test
