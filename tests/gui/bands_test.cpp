// The stack of the curve: bands add up to what is alive, whatever they are and whatever is left
// out, and hands choose them.
#include "gui/indexes/bands.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::bands_test {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Opened> opened_vit(const std::string& strategy) {
  return predict(vit({strategy})).front().opened;
}

std::vector<CurveChoice> all_choices() {
  std::vector<CurveChoice> choices;
  for (const auto& [by, name] : curve_names)
    for (const bool hides_persistent : {false, true})
      for (const unsigned long long hidden : {0ULL, 1ULL << static_cast<int>(Category::Activation)})
        choices.push_back({by, hidden, hides_persistent});
  return choices;
}

bool is_in(const Buffer& buffer, const CurveChoice& choice) {
  return !choice.hidden[static_cast<std::size_t>(buffer.category)] &&
         !(choice.hides_persistent && buffer.persistent);
}

// By looking at every buffer.
Bytes alive_at(const Opened& opened, StateId state, const CurveChoice& choice) {
  Bytes sum;
  for (std::size_t b = 0; b < opened.schedule().buffers.size(); ++b)
    if (const auto id = static_cast<BufferId>(b);
        opened.buffers().is_alive(id, state) && is_in(opened.schedule()[id], choice))
      sum += opened.schedule()[id].size;
  return sum;
}

TEST(Bands, AddUpToWhatIsAliveAndNotLeftOut) {
  const auto opened = opened_vit("pareprop");
  for (const CurveChoice& choice : all_choices()) {
    const Bands bands(opened, choice, {0, opened->end()});
    BandBytes bytes(bands);
    for (StateId state = 0; state < opened->memory().states(); ++state) {
      Bytes sum;
      for (const Bytes band : bytes.at(state)) sum += band;
      ASSERT_EQ(sum, bands.total_of(state)) << choice.left_out() << " at " << state;
      if (state % 61 == 0) {
        ASSERT_EQ(sum, alive_at(*opened, state, choice));
      }
    }
  }
}

TEST(Bands, AreTheSameInAnyOrderOfMoments) {
  const auto opened = opened_vit("checkpoint");
  const Bands bands(opened, {.by = CurveBy::Module}, {0, opened->end()});
  BandBytes forwards(bands), about(bands);
  const std::size_t states = opened->memory().states();
  for (StateId i = 0; i < states; ++i) {
    // 7919 is a prime: a walk through all states with large steps.
    const StateId state = i * 7919 % states;
    BandBytes fresh(bands);
    const auto expected = fresh.at(state);
    ASSERT_TRUE(std::ranges::equal(about.at(state), expected)) << state;
    ASSERT_TRUE(std::ranges::equal(forwards.at(i), BandBytes(bands).at(i))) << i;
  }
}

TEST(Bands, OfModulesAreWhatLivesInThem) {
  const auto opened = opened_vit("vanilla");
  const Bands bands(opened, {.by = CurveBy::Module}, {0, opened->end()});
  std::map<std::string, Bytes> expected, found;
  const StateId peak = opened->peak();
  for (std::size_t b = 0; b < opened->schedule().buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    const std::int32_t block = opened->block_of(id);
    if (block >= 0 && opened->buffers().is_alive(id, peak))
      expected[opened->block_name(block)] += opened->schedule()[id].size;
  }
  BandBytes bytes(bands);
  for (std::size_t i = 0; i < bands.all().size(); ++i)
    if (bands.all()[i].block) found[bands.all()[i].name] = bytes.at(peak)[i];
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), 12u);
  EXPECT_EQ(bands.all()[bands.all().size() - 2].name, "loss") << "the last in the trace is on top";
}

// The highest moment of a part is not that of the whole.
TEST(Bands, TheHighestMomentIsThatOfWhatIsShown) {
  const auto opened = opened_vit("pareprop");
  for (const CurveChoice& choice : all_choices()) {
    const Bands bands(opened, choice, {0, opened->end()});
    StateId best = 0;
    for (StateId state = 0; state < opened->memory().states(); ++state)
      if (bands.total_of(state) > bands.total_of(best)) best = state;
    EXPECT_EQ(bands.highest(), best);
    EXPECT_EQ(bands.highest_in(0, opened->end() + 1), best);
  }
}

TEST(Bands, TensorsOfTheirOwnAreTheLargestThatLiveInWhatIsVisible) {
  const auto opened = std::make_shared<const Opened>(synthetic(3000));
  const Bands whole(opened, {.by = CurveBy::Tensor}, {0, opened->end()});
  EXPECT_EQ(whole.all().size(), Bands::most);
  EXPECT_EQ(whole.all().back().name, "smaller tensors");
  // Buffer 0 alone is alive in the first microsecond.
  const Bands begin(opened, {.by = CurveBy::Tensor}, {0, 500});
  ASSERT_EQ(begin.all().size(), 2u);
  EXPECT_EQ(begin.all()[0].buffer, BufferId{0});
}

TEST(Curves, OfMillionsComeBesideTheDrawing) {
  const auto opened = std::make_shared<const Opened>(synthetic(Curves::most_at_once));
  Curves curves;
  const CurveChoice modules{.by = CurveBy::Module};
  const Range all{0, opened->end()};
  EXPECT_EQ(curves.of(opened, modules, all)->by(), CurveBy::Category) << "not yet";
  curves.wait();
  EXPECT_EQ(curves.of(opened, modules, all)->by(), CurveBy::Module);
  EXPECT_FALSE(curves.is_catching_up());
}

class Stack : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"vanilla"})); }
  Robot robot_;
};

TEST_F(Stack, MGoesThroughWhatTheCurveStacks) {
  for (const CurveBy by : {CurveBy::Module, CurveBy::Tensor, CurveBy::Category}) {
    robot_.press(Key::M);
    EXPECT_EQ(robot_.view.curve.by, by);
    EXPECT_GT(robot_.view.facts.bands, 100u);
    EXPECT_GT(robot_.view.facts.columns, 100u);
  }
}

// A LoRA step is a hairline above what is persistent.
TEST_F(Stack, XLeavesOutWhatIsPersistent) {
  const double whole = robot_.view.facts.byte_top;
  robot_.press(Key::X);
  EXPECT_TRUE(robot_.view.curve.hides_persistent);
  Bytes persistent;
  for (const Buffer& buffer : robot_.shown().schedule().buffers)
    if (buffer.persistent) persistent += buffer.size;
  EXPECT_LT(robot_.view.facts.byte_top, whole - 0.9 * static_cast<double>(persistent.count));
  robot_.press(Key::X);
  EXPECT_EQ(robot_.view.facts.byte_top, whole);
}

TEST_F(Stack, HHidesTheSelectedCategoryAndShowsAllAgain) {
  robot_.view.selection.category = Category::Parameter;
  robot_.press(Key::H);
  EXPECT_EQ(robot_.view.curve.left_out(), "without parameter");
  EXPECT_TRUE(robot_.view.selection.is_empty());
  robot_.press(Key::H);
  EXPECT_TRUE(robot_.view.curve.is_whole());
}

TEST_F(Stack, AClickOnABandSelectsItsModuleOrTensor) {
  robot_.press(Key::M);
  robot_.click(robot_.middle(), robot_.view.facts.memory_bottom - 40);
  ASSERT_TRUE(robot_.view.facts.band);
  EXPECT_GE(robot_.view.selection.block, 0);
  robot_.press(Key::M);
  robot_.click(robot_.middle(), robot_.view.facts.memory_bottom - 40);
  EXPECT_TRUE(robot_.view.selection.buffer);
}

TEST_F(Stack, TheWheelOnTheAxisOfBytesZoomsItAndFFits) {
  const Range time = robot_.view.visible;
  robot_.move(robot_.view.facts.left - 20, robot_.view.facts.memory_bottom - 20);
  robot_.turn(5);
  ASSERT_TRUE(robot_.view.bytes);
  EXPECT_EQ(robot_.view.visible, time);
  EXPECT_LT(robot_.view.bytes->span(), 0.4 * robot_.view.facts.byte_top);
  EXPECT_GE(robot_.view.bytes->begin, 0);
  robot_.turn(-30);
  EXPECT_FALSE(robot_.view.bytes) << "all of it again";
  robot_.turn(5);
  robot_.press(Key::F);
  EXPECT_FALSE(robot_.view.bytes);
}

// What moves is drawn as it is then: a box per pixel and band at most, however many tensors. In a
// column each band is two pixels high or more, and what is left of the lower ones is one more; or
// all that have bands are there.
TEST(StackOfMany, BoxesAreAsFewAsPixels) {
  Robot robot;
  robot.open(synthetic(50'000));
  robot.view.curve.by = CurveBy::Tensor;
  robot.move(robot.middle(), robot.curve());
  const auto width = static_cast<std::size_t>(robot.view.facts.right - robot.view.facts.left);
  const auto height =
      static_cast<std::size_t>(robot.view.facts.memory_bottom - robot.view.facts.memory_top);
  const std::size_t most_in_a_column = std::min(height / 2 + 1, Bands::most);
  for (int i = 0; i < 20; ++i) {
    robot.frames();
    EXPECT_LE(robot.view.facts.columns, width);
    EXPECT_LE(robot.view.facts.bands, robot.view.facts.columns * most_in_a_column)
        << robot.view.visible.span();
    robot.turn(2);
  }
}

TEST(CurveChoiceText, SaysWhatIsLeftOut) {
  CurveChoice choice;
  EXPECT_EQ(choice.left_out(), "");
  choice.hidden.set(static_cast<std::size_t>(Category::Gradient));
  choice.hides_persistent = true;
  EXPECT_EQ(choice.left_out(), "without gradient, without what is persistent");
}

}  // namespace
}  // namespace tidemark::gui::bands_test
