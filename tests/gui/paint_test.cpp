// Text and legends keep within their boxes and lose nothing without saying so.
#include "gui/drawing/paint.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"

namespace tidemark::gui::paint_test {
namespace {

class Paint : public testing::Test {
 protected:
  void SetUp() override { robot_.frames(1); }  // from now on there is a font
  Robot robot_;
};

TEST_F(Paint, WhatFitsStaysAsItIs) {
  EXPECT_EQ(fitted("blocks.0", 1000), "blocks.0");
  EXPECT_EQ(fitted("", 0), "");
}

TEST_F(Paint, WhatDoesNotFitEndsInDotsWithinTheWidth) {
  const std::string text = "stages.0.blocks.1.attn.softmax";
  for (float width = 30; width < text_width(text); width += 7) {
    const std::string shown = fitted(text, width);
    EXPECT_TRUE(shown.ends_with("...")) << width;
    EXPECT_LE(text_width(shown), width);
    EXPECT_TRUE(text.starts_with(shown.substr(0, shown.size() - 3)));
  }
}

TEST_F(Paint, LettersOfSeveralBytesAreNotCutInHalf) {
  for (float width = 20; width < 120; width += 3) {
    const std::string shown = fitted("µµµµµµµµµµµµµµµµ", width);
    if (shown.empty()) continue;
    EXPECT_EQ((shown.size() - 3) % 2, 0u) << shown;
  }
}

TEST_F(Paint, ALegendTakesAsManyRowsAsItNeeds) {
  const std::vector<KeyEntry> entries(6, {"activation", color_of(Category::Activation)});
  const float one = key_height(entries, 10'000);
  EXPECT_GT(one, 0);
  EXPECT_EQ(key_height(entries, 1), 6 * one);  // narrower than any: one in each row
  EXPECT_EQ(key_height({}, 100), 0);
  float before = 6 * one;
  for (float width = 10; width < 900; width += 10) {
    EXPECT_LE(key_height(entries, width), before);
    before = key_height(entries, width);
  }
  EXPECT_EQ(before, one);
}

TEST_F(Paint, CountsAreGroupedAndHaveAPlural) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(1'209'019), "1 209 019");
  EXPECT_EQ(count_text(1, "gap"), "1 gap");
  EXPECT_EQ(count_text(2, "gap"), "2 gaps");
}

}  // namespace
}  // namespace tidemark::gui::paint_test
