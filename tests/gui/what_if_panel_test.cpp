// The panel of inputs, worked by hands: what each button, list and slider asks for. And the row of
// numbers above, which says what came of it.
#include <gmock/gmock.h>

#include "tests/gui/reader.h"

namespace tidemark::gui::what_if_panel_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WhatIfPanel : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"vanilla"})); }
  const WhatIf& asked() const { return *robot_.model.what_if(); }
  /// In the field below this label of the panel, `x` pixels from its left.
  void click_below(std::string_view label, float x = 100) {
    const Drawing drawing = robot_.drawn();
    const auto found = std::ranges::find_if(
        drawing.texts, [&](const Drawn& one) { return one.text == label && one.box.x0 < 30; });
    ASSERT_NE(found, drawing.texts.end()) << label;
    robot_.click(8 + x, std::floor(found->box.y0) + 28);
  }
  void choose(std::string_view label, std::string_view choice) {
    click_below(label);
    robot_.click_on_last(choice);  // lists lie over all else
    EXPECT_EQ(robot_.model.problem(), "");
  }

  Reader robot_;
};

TEST_F(WhatIfPanel, ButtonsStepThroughTheUsualNumbers) {
  ASSERT_TRUE(robot_.says("8 samples"));
  robot_.click_on("+");
  EXPECT_EQ(asked().scenario.step.batch, 12);
  EXPECT_TRUE(robot_.says("12 samples"));
  robot_.click_on("−");
  robot_.click_on("−");
  EXPECT_EQ(asked().scenario.step.batch, 6);
  EXPECT_EQ(robot_.shown().trace().step.batch, 6);
}

TEST_F(WhatIfPanel, OneSampleIsTheLeast) {
  robot_.ask(vit({"vanilla"}, 2));
  robot_.click_on("−");
  robot_.click_on("−");
  EXPECT_EQ(asked().scenario.step.batch, 1);
  EXPECT_TRUE(robot_.says("1 sample"));
}

TEST_F(WhatIfPanel, TheBatchSlidesToNumbersThatPeopleUse) {
  click_below("batch", 150);  // 1 to 4096 along a logarithmic scale
  const std::int64_t batch = asked().scenario.step.batch;
  EXPECT_NE(batch, 8);
  const std::vector<std::int64_t> usual = {16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
  EXPECT_NE(std::ranges::find(usual, batch), usual.end()) << batch;
}

// 32 pixels are a step of the slider: 224 are the seventh.
TEST_F(WhatIfPanel, AnImageSlidesInStepsOfThirtyTwoPixels) {
  ASSERT_TRUE(robot_.says("224 pixels"));
  click_below("image", 269);
  EXPECT_EQ(asked().scenario.step.image, 1024);
  EXPECT_TRUE(robot_.says("1024 pixels"));
  click_below("image", 12);
  EXPECT_EQ(asked().scenario.step.image, 32);
}

TEST_F(WhatIfPanel, APrecisionIsChosenAndLeftToTheModelAgain) {
  ASSERT_TRUE(robot_.says("fp32 (default)"));
  choose("precision", "amp-bf16");
  EXPECT_EQ(asked().scenario.step.precision, Precision::AmpBf16);
  EXPECT_FALSE(robot_.says("fp32 (default)"));
  choose("precision", "fp32 (default)");
  EXPECT_FALSE(asked().scenario.step.precision);
}

TEST_F(WhatIfPanel, AnAttentionIsChosen) {
  choose("attention", "math");
  EXPECT_EQ(asked().scenario.step.attention, Attention::Math);
  choose("attention", "what PyTorch picks (default)");
  EXPECT_FALSE(asked().scenario.step.attention);
}

TEST_F(WhatIfPanel, AnotherModelForgetsTheSizesOfTheFirst) {
  click_below("image", 269);
  choose("model", "vit-ti-16");
  EXPECT_EQ(asked().scenario.model.name, "vit-ti-16");
  EXPECT_FALSE(asked().scenario.step.image);
  EXPECT_EQ(asked().scenario.step.batch, 8);
}

TEST_F(WhatIfPanel, ATextHasASequenceInPlaceOfAnImage) {
  WhatIf gpt2 = vit({"vanilla"}, 1);
  gpt2.scenario.model = find_model("gpt2");
  robot_.ask(gpt2);
  EXPECT_FALSE(robot_.says("image"));
  ASSERT_TRUE(robot_.says("1024 tokens"));  // what its positions allow
  const Drawing drawing = robot_.drawn();
  float lowest = 0, x = 0;
  for (const Drawn& one : drawing.texts)
    if (one.text == "−") lowest = one.box.y0, x = one.box.x0;
  robot_.click(std::floor(x) + 4, std::floor(lowest) + 6);
  EXPECT_EQ(asked().scenario.step.sequence, 768);
}

TEST_F(WhatIfPanel, AStrategyAndItsOptionsAreChosen) {
  choose("strategy", "checkpoint");
  EXPECT_EQ(asked().strategies.front().text, "checkpoint");
  ASSERT_TRUE(robot_.says("every"));
  robot_.click_on("every");  // the middle of its slider
  EXPECT_THAT(asked().strategies.front().text, StartsWith("checkpoint:every="));
  EXPECT_EQ(robot_.model.report_of(0)->strategy, asked().strategies.front().text);
}

TEST_F(WhatIfPanel, ASecondStrategyIsComparedAtOnce) {
  choose("compared with", "mesa");
  ASSERT_EQ(asked().strategies.size(), 2u);
  EXPECT_EQ(asked().strategies[1].text, "mesa");
  EXPECT_EQ(robot_.view.against, 1u);
  EXPECT_EQ(robot_.model.recordings().size(), 2u);
  choose("compared with", "nothing");
  EXPECT_EQ(asked().strategies.size(), 1u);
  EXPECT_FALSE(robot_.view.against);
}

TEST_F(WhatIfPanel, ADeviceIsChosen) {
  choose("device", find_device("h100").title);
  EXPECT_EQ(asked().scenario.device.name, "h100");
  EXPECT_EQ(robot_.shown().recording.device, "h100");
}

// A budget begins at what the device has, and goes down from there.
TEST_F(WhatIfPanel, ABudgetIsSetAndTakenAway) {
  const Bytes capacity = robot_.model.report_of(0)->capacity;
  robot_.click_on("budget");
  ASSERT_TRUE(asked().scenario.budget);
  EXPECT_EQ(*asked().scenario.budget, capacity);
  EXPECT_TRUE(robot_.says("budget " + to_text(capacity)));  // above, as what is not the default
  robot_.click_on("budget");
  EXPECT_FALSE(asked().scenario.budget);
}

TEST_F(WhatIfPanel, TheBudgetSlides) {
  robot_.click_on("budget");
  const Drawing drawing = robot_.drawn();
  const Drawn* box = nullptr;
  for (const Drawn& one : drawing.texts)
    if (one.text == "budget" && one.box.x0 < 60) box = &one;
  ASSERT_TRUE(box);
  robot_.click(20, std::floor(box->box.y0) + 30);  // its left end
  EXPECT_EQ(*asked().scenario.budget, Bytes{std::int64_t{64} << 20});
  EXPECT_FALSE(robot_.model.report_of(0)->fits);
}

TEST_F(WhatIfPanel, AllocatorSettingsAreTyped) {
  click_below("allocator settings");
  robot_.type("expandable_segments:True");
  EXPECT_EQ(asked().allocator, "expandable_segments:True");
  EXPECT_EQ(robot_.model.problem(), "");
  robot_.type("x");
  EXPECT_NE(robot_.model.problem(), "");
  EXPECT_TRUE(robot_.drawn().mentions("expandable_segments"));
  robot_.press(Key::Backspace);
  EXPECT_EQ(asked().allocator, "expandable_segments:True");
  EXPECT_EQ(robot_.model.problem(), "");
}

TEST_F(WhatIfPanel, ACautionIsSaidInTheRowAbove) {
  const auto is_said = [&] {
    for (const Drawn& one : robot_.drawn().texts)
      if (one.text.starts_with("⚠") && one.box.y0 < 80) return true;
    return false;
  };
  EXPECT_FALSE(is_said());
  choose("strategy", "mesa");
  EXPECT_TRUE(is_said());
}

TEST_F(WhatIfPanel, CopiesWhatOneWouldType) {
  EXPECT_FALSE(robot_.says("Copy as command line"));
  robot_.model.command_of = [](const WhatIf& what_if) {
    return "tidemark view --batch " + std::to_string(what_if.scenario.step.batch);
  };
  robot_.frames(1);
  robot_.click_on("Copy as command line");
  EXPECT_STREQ(ImGui::GetClipboardText(), "tidemark view --batch 8");
  EXPECT_EQ(robot_.view.notice, "copied: tidemark view --batch 8");
}

TEST_F(WhatIfPanel, TellsThatAFileIsShownAndGoesBack) {
  robot_.open(synthetic(4));
  EXPECT_TRUE(robot_.drawn().mentions("These inputs are not of what is"));
  robot_.click_on("Show their prediction");
  EXPECT_EQ(robot_.view.shown, 0u);
  EXPECT_FALSE(robot_.says("Show their prediction"));
}

TEST_F(WhatIfPanel, MoreInputsAreFoldedAwayAndCounted) {
  EXPECT_TRUE(robot_.says("more inputs"));
  WhatIf more = asked();
  more.scenario.step.optimizer = Optimizer::Sgd;
  robot_.ask(more);
  EXPECT_TRUE(robot_.says("more inputs, 1 set"));
}

TEST_F(WhatIfPanel, MovesIntoATabAndBack) {
  EXPECT_TRUE(robot_.says("8 samples"));
  robot_.click_on("What if");
  EXPECT_FALSE(robot_.view.shows_what_if);
  EXPECT_FALSE(robot_.says("8 samples"));
  robot_.view.wanted_tab = Tab::WhatIf;
  robot_.frames(3);
  EXPECT_EQ(robot_.view.tab, Tab::WhatIf);
  EXPECT_TRUE(robot_.says("8 samples"));
}

TEST_F(WhatIfPanel, AChangeIsSaidInTheNumbersAboveUntilTheNextClick) {
  const Report before = *robot_.model.report_of(0);
  robot_.click_on("+");
  const Report now = *robot_.model.report_of(0);
  EXPECT_TRUE(robot_.says(to_text(before.reserved_peak) + " → " + to_text(now.reserved_peak) +
                          " of " + to_text(now.capacity)));
  EXPECT_TRUE(robot_.says(to_text(before.step) + " → " + to_text(now.step)));
  EXPECT_TRUE(robot_.drawn().mentions("before "));  // its peak in the curve
  robot_.click(robot_.middle(), robot_.curve());
  EXPECT_FALSE(robot_.drawn().mentions(" → "));
}

TEST_F(WhatIfPanel, AChipIsSetBackFromItsMenu) {
  choose("precision", "amp-bf16");
  const Drawing drawing = robot_.drawn();
  const Drawn* chip = nullptr;
  for (const Drawn& one : drawing.texts)
    if (one.text == "amp-bf16" && one.box.y0 < 50) chip = &one;
  ASSERT_TRUE(chip);
  robot_.click(std::floor(chip->box.x0) + 5, std::floor(chip->box.y0) + 6);
  robot_.click_on("default");
  EXPECT_FALSE(asked().scenario.step.precision);
}

TEST_F(WhatIfPanel, NumbersSayWhatTheyMean) {
  robot_.move_to("reserved");
  EXPECT_TRUE(robot_.drawn().mentions("This has to fit"));
  robot_.move_to("samples/s");
  EXPECT_TRUE(robot_.drawn().mentions("Samples of all ranks in a second"));
}

}  // namespace
}  // namespace tidemark::gui::what_if_panel_test
