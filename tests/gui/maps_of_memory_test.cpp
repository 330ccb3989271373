// The live set as an icicle and as a map of addresses: each as wide as its bytes, and found where
// it is drawn.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::maps_of_memory_test {
namespace {

constexpr float right = 940;

// Four tensors of a KiB, and a parameter of 4 that is there all the time and of no op.
Recording with_parameter() {
  Recording recording = synthetic(4);
  recording.schedule.buffers.push_back(
      {.size = {4 << 10}, .category = Category::Parameter, .persistent = true});
  recording.offsets.push_back(4 << 10);
  recording.planned = Bytes{8 << 10};
  recording.timeline.baseline[static_cast<std::size_t>(Category::Parameter)] = Bytes{4 << 10};
  return recording;
}

class IciclePanel : public testing::Test {
 protected:
  void SetUp() override {
    robot_.open(with_parameter());
    robot_.open_tab(Tab::Icicle);
  }
  /// Of the panel alone.
  const Drawn* find(const Drawing& drawing, std::string_view text) const {
    const Drawn* alive = drawing.find("alive  ");
    for (const Drawn& one : drawing.texts)
      if (one.text == text && one.box.x0 < right && one.box.y0 >= alive->box.y0) return &one;
    return nullptr;
  }
  void click_in(std::string_view text) {
    const Drawing drawing = robot_.drawn();
    const Drawn* one = find(drawing, text);
    ASSERT_TRUE(one) << text;
    robot_.click(std::floor(one->box.x0) + 5, std::floor(one->box.y0) + 5);
  }

  Reader robot_;
};

// 928 pixels are 8 KiB: parameters first, then four of 116.
TEST_F(IciclePanel, NodesAreAsWideAsTheirBytes) {
  const Drawing drawing = robot_.drawn();
  EXPECT_TRUE(find(drawing, "alive  8.00 KiB"));
  EXPECT_NEAR(find(drawing, "parameter  4.00 KiB")->box.x0, 12, 1);
  EXPECT_NEAR(find(drawing, "activation  4.00 KiB")->box.x0, 8 + 464 + 4, 1);
  EXPECT_NEAR(find(drawing, "block0  4.00 KiB")->box.x0, 8 + 464 + 4, 1);
  EXPECT_TRUE(find(drawing, "outside of blocks  4.00 KiB"));
  EXPECT_TRUE(find(drawing, "(from outside)  4.00 KiB"));
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(find(drawing, "gelu" + std::to_string(i) + "  1.00 KiB")->box.x0,
                8 + 464 + 116 * i + 4, 1);
  // One below the other: all, categories, blocks, ops.
  EXPECT_LT(find(drawing, "alive  8.00 KiB")->box.y0,
            find(drawing, "activation  4.00 KiB")->box.y0);
  EXPECT_LT(find(drawing, "block0  4.00 KiB")->box.y0, find(drawing, "gelu0  1.00 KiB")->box.y0);
}

TEST_F(IciclePanel, AClickSelectsWhatIsThere) {
  click_in("gelu2  1.00 KiB");
  EXPECT_EQ(robot_.view.selection, (Selection{.op = static_cast<OpId>(2)}));
  click_in("block0  4.00 KiB");
  EXPECT_EQ(robot_.view.selection, (Selection{.block = 0}));
  click_in("parameter  4.00 KiB");
  EXPECT_EQ(robot_.view.selection, (Selection{.category = Category::Parameter}));
  click_in("alive  8.00 KiB");
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

TEST_F(IciclePanel, TheMouseReadsTheShare) {
  const Drawing drawing = robot_.drawn();
  const Drawn* one = find(drawing, "gelu1  1.00 KiB");
  robot_.move(std::floor(one->box.x0) + 5, std::floor(one->box.y0) + 5);
  EXPECT_TRUE(robot_.says("op gelu1"));
  EXPECT_TRUE(robot_.says("1.00 KiB in 1 buffer, 12.5 % of what is alive"));
  const Drawn* all = find(drawing, "alive  8.00 KiB");
  robot_.move(std::floor(all->box.x0) + 5, std::floor(all->box.y0) + 5);
  EXPECT_TRUE(robot_.says("8.00 KiB in 5 buffers, 100.0 % of what is alive"));
}

TEST_F(IciclePanel, WhatIsSelectedHasAFrame) {
  robot_.view.selection = {.category = Category::Activation};
  robot_.frames(2);
  const auto frames = [&] {
    std::vector<Box> found;
    for (const Drawn& shape : robot_.drawn().of_color(theme::bright))
      if (shape.box.y0 > 560 && shape.box.x1 < right && shape.box.width() > 60)
        found.push_back(shape.box);
    return found;
  };
  ASSERT_EQ(frames().size(), 1u);
  EXPECT_NEAR(frames()[0].x0, 8 + 464, 2);
  EXPECT_NEAR(frames()[0].x1, 8 + 928, 2);
  robot_.view.selection = {.op = static_cast<OpId>(3)};
  robot_.frames(2);
  ASSERT_EQ(frames().size(), 1u);
  EXPECT_NEAR(frames()[0].x0, 8 + 464 + 348, 2);
  robot_.view.selection = {.block = 0};
  robot_.frames(2);
  EXPECT_EQ(frames().size(), 1u);
}

// Two tensors of a KiB, at 0 and at 3 KiB of 5: gaps of two and of one between and behind them.
Recording with_gaps() {
  Recording recording = synthetic(2);
  recording.offsets = {0, 3 << 10};
  recording.planned = Bytes{5 << 10};
  return recording;
}

class AddressPanel : public testing::Test {
 protected:
  void SetUp() override {
    robot_.open(with_gaps());
    robot_.open_tab(Tab::Addresses);
  }
  static float x_of(double kib) { return static_cast<float>(8 + 928 * kib / 5); }
  float y() const { return robot_.drawn().find("2.00 KiB free")->box.y0; }
  std::vector<Box> taken() const {
    std::vector<Box> found;
    for (const Color color : {color_of(Category::Activation),
                              mixed(color_of(Category::Activation), theme::ground, 0.2)})
      for (const Drawn& shape : robot_.drawn().of_color(color))
        if (shape.box.y0 > 550 && shape.box.x1 < right && shape.alpha() == 255)
          found.push_back(shape.box);
    return found;
  }

  Reader robot_;
};

TEST_F(AddressPanel, CountsWhatIsFree) {
  EXPECT_TRUE(robot_.says(
      "arena of 5.00 KiB: 2.00 KiB alive, 3.00 KiB free in 2 gaps, the largest 2.00 KiB"));
  put_cursor(robot_.shown(), 1, robot_.view);
  robot_.frames(3);
  EXPECT_TRUE(robot_.says(
      "arena of 5.00 KiB: 1.00 KiB alive, 4.00 KiB free in 1 gap, the largest 4.00 KiB"));
}

TEST_F(AddressPanel, BuffersAreAtTheirAddresses) {
  const auto boxes = taken();
  ASSERT_EQ(boxes.size(), 2u);
  EXPECT_NEAR(boxes[0].x0, x_of(0), 0.6);
  EXPECT_NEAR(boxes[0].x1, x_of(1) - 1, 0.6);  // a seam between neighbours
  EXPECT_NEAR(boxes[1].x0, x_of(3), 0.6);      // every other one is darker
  EXPECT_NEAR(boxes[1].x1, x_of(4) - 1, 0.6);
  const Drawing drawing = robot_.drawn();
  const Color darker = mixed(color_of(Category::Activation), theme::ground, 0.2);
  ASSERT_EQ(drawing.of_color(darker).size(), 1u);
  EXPECT_NEAR(drawing.of_color(darker)[0].box.x0, x_of(3), 0.6);
  const Drawn* free = drawing.find("2.00 KiB free");
  ASSERT_TRUE(free);
  EXPECT_NEAR((free->box.x0 + free->box.x1) / 2, x_of(2), 1);
  EXPECT_TRUE(drawing.says("1.00 KiB free"));
}

TEST_F(AddressPanel, TheMouseFindsBuffersAndGaps) {
  robot_.move(std::floor(x_of(3.5)), y());
  EXPECT_TRUE(robot_.says("1.00 KiB at 3.00 KiB (byte 3072)"));
  robot_.click(std::floor(x_of(3.5)), y());
  EXPECT_EQ(robot_.view.selection.buffer, BufferId{1});
  robot_.view.selection = {};
  robot_.click(std::floor(x_of(2)), y());
  EXPECT_TRUE(robot_.view.selection.is_empty());
  EXPECT_EQ(robot_.drawn().count("2.00 KiB free"), 2u);  // in the gap, and at the mouse
}

TEST_F(AddressPanel, WhatIsNotSelectedIsDim) {
  robot_.view.selection = {.buffer = BufferId{0}};
  robot_.frames(2);
  const auto boxes = taken();
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_NEAR(boxes[0].x0, x_of(0), 0.6);
  bool has_frame = false;
  for (const Drawn& shape : robot_.drawn().of_color(theme::bright))
    has_frame |= shape.box.y0 > 550 && std::abs(shape.box.x1 - x_of(1)) < 2;
  EXPECT_TRUE(has_frame);
}

TEST_F(AddressPanel, TheWheelZoomsAtTheAddressUnderTheMouse) {
  // The arena is a page and a quarter: zooming stops at a page of 4096 bytes.
  robot_.move(std::floor(x_of(2.5)), y());
  robot_.turn(0.5);
  EXPECT_NEAR(robot_.view.addresses.span(), 5120 * std::pow(0.8, 0.5), 1);
  EXPECT_NEAR((robot_.view.addresses.begin + robot_.view.addresses.end) / 2, 2560, 10);
  robot_.turn(9);
  EXPECT_NEAR(robot_.view.addresses.span(), 4096, 0.01);
  const Range before = robot_.view.addresses;
  robot_.drag(1, 400, 400 + 93, y());  // a tenth of the width
  EXPECT_NEAR(robot_.view.addresses.begin, before.begin - 0.1 * 4096, 15);
}

TEST_F(AddressPanel, WithoutAddressesItSaysSo) {
  Recording recording = synthetic(2);
  recording.offsets.clear();
  robot_.open(std::move(recording));
  robot_.frames(3);
  EXPECT_TRUE(robot_.says("This recording does not say where in memory its buffers were."));
}

}  // namespace
}  // namespace tidemark::gui::maps_of_memory_test
