// Every panel draws whatever a recording can be, and clicks in one panel show in the others.
#include <gmock/gmock.h>

#include "gui/comparison.h"
#include "tests/gui/robot.h"
#include "tests/simulator/recorded.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

Trace one_op() {
  TraceBuilder b("one op", "toy", {.precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  const TensorId x = b.input("x", {4, 8}, DType::Float32);
  Trace trace = b.finish(b.gelu("gelu", x));
  trace.tensors[0].trainable = true;
  return trace;
}

// A step in which nothing happens, of a device that nobody knows.
Recording nothing() {
  Recording recording;
  recording.source = Source::Measured;
  recording.device = "unknown";
  recording.trace = std::make_shared<const Trace>();
  return recording;
}

void draw_all_tabs(Robot& robot) {
  for (const auto& [tab, name] : tab_names) {
    robot.view.wanted_tab = tab;
    robot.frames(3);
    EXPECT_TRUE(robot.view.tab == tab || tab == Tab::WhatIf) << name;
  }
}

TEST(Panels, DrawNothingAtAll) {
  Robot robot;
  robot.frames(3);
  robot.press(Key::F);
  robot.press(Key::Slash);
  robot.press(Key::K);
  EXPECT_TRUE(robot.model.is_empty());
}

TEST(Panels, DrawAnEmptyRecording) {
  Robot robot;
  robot.open(nothing());
  draw_all_tabs(robot);
  robot.click(robot.middle(), robot.curve());
  robot.press(Key::Period);
  robot.press(Key::R);
  robot.drag(0, robot.middle(), robot.middle() + 100, robot.curve());
  EXPECT_EQ(robot.view.facts.cells, 0u);
}

TEST(Panels, DrawOneOp) {
  Robot robot;
  robot.open(recorded(one_op(), "vanilla"));
  draw_all_tabs(robot);
  EXPECT_GT(robot.view.facts.cells, 0u);
  EXPECT_EQ(robot.view.facts.runs, robot.shown().timeline().runs.size());
}

TEST(Panels, DrawInAnySize) {
  for (const PixelSize size : {smallest_picture, PixelSize{480, 700}, PixelSize{3000, 400}}) {
    for (const float scale : {0.5F, 1.0F, 2.0F}) {
      Robot robot(size, scale);
      robot.ask(vit({"pareprop", "vanilla"}));
      robot.view.against = 1;
      draw_all_tabs(robot);
      robot.press(Key::Slash);
      robot.press(Key::Escape);
      robot.view.shows_help = true;
      robot.frames(3);
      const Image image = robot.stage.picture();
      EXPECT_EQ(image.width, size.width);
      EXPECT_EQ(image.height, size.height);
    }
  }
}

TEST(Panels, AClickInTheListSelectsTheTensorEverywhere) {
  Robot robot;
  robot.ask(vit({"checkpoint"}));
  robot.view.wanted_tab = Tab::LiveSet;
  robot.frames(3);
  robot.click(450, 640);
  ASSERT_TRUE(robot.view.selection.buffer);
  EXPECT_TRUE(robot.shown().buffers().is_alive(*robot.view.selection.buffer, robot.view.cursor));
  EXPECT_EQ(robot.view.selection.op, robot.shown().home_of(*robot.view.selection.buffer));
}

TEST(Panels, AClickInTheIcicleSelectsABlock) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  robot.view.wanted_tab = Tab::Icicle;
  robot.frames(3);
  robot.click(800, 690);
  EXPECT_GE(robot.view.selection.block, 0);
}

TEST(Panels, AClickOnAnAddressSelectsWhatIsThere) {
  Robot robot;
  robot.ask(vit({"vanilla"}));
  robot.view.wanted_tab = Tab::Addresses;
  robot.frames(3);
  robot.click(700, 660);
  ASSERT_TRUE(robot.view.selection.buffer);
  const Range before = robot.view.addresses;
  robot.turn(4);
  EXPECT_LT(robot.view.addresses.span(), before.span());
}

TEST(Comparison, OfTheSameIsAllEqual) {
  const Opened a(recorded(one_op(), "vanilla")), b(recorded(one_op(), "vanilla"));
  ASSERT_FALSE(differences(a, b).empty());
  for (const Difference& row : differences(a, b)) EXPECT_EQ(row.change(), 0) << row.name;
}

TEST(Comparison, ListsLargeDifferencesFirst) {
  const auto made = predict(vit({"vanilla", "mesa"}));
  const auto rows = differences(*made[0].opened, *made[1].opened);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].group != rows[i - 1].group || rows[i].group == "step") continue;
    EXPECT_LE(std::abs(rows[i].change()), std::abs(rows[i - 1].change())) << rows[i].name;
  }
  const auto quantize = std::ranges::find(rows, "quantize", &Difference::name);
  ASSERT_NE(quantize, rows.end());
  EXPECT_EQ(quantize->a, 0);
  EXPECT_GT(quantize->b, 0);
}

}  // namespace
}  // namespace tidemark
