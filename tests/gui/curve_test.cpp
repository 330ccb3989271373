// The memory curve on paper: which box each band is at which moment, what the mouse finds in it,
// and where labels stand.
#include <gmock/gmock.h>

#include "gui/panels/curve_stack.h"
#include "tests/gui/laid_out.h"

namespace tidemark::gui::curve_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes kib{1024};

// Four tensors of a KiB each come at 0, 1, 2 and 3 µs and go at 7.9, 6.9, 5.9 and 4.9 µs. A pixel
// is 8 ns; with 4 KiB at the top a KiB is 50 pixels.
class CurveStack : public WithFont {
 protected:
  struct Drawn4 {
    LaidOut out;
    Heights height;
    Drawing drawing;
  };
  static Drawn4 draw(const CurveChoice& choice, double top = 4096, Selection selection = {}) {
    LaidOut out(synthetic(4), {0, 8000}, choice);
    out.view.selection = selection;
    const Heights height{out.places.memory, top};
    Sheet sheet;
    draw_stack(sheet.list(), out.places, *out.places.curves.front(), height, out.view);
    Drawing drawing = sheet.drawing();
    return {std::move(out), height, std::move(drawing)};
  }
};

TEST_F(CurveStack, ABoxLastsAsLongAsABandStaysWhereItIs) {
  const auto [out, height, drawing] = draw({});
  const auto boxes = drawing.of_color(color_of(Category::Activation));
  // Up at each µs, which are 125 px; down 0.9 µs after the later ones, in the next whole column.
  const std::array<std::array<float, 3>, 7> expected = {{{100, 225, 1},
                                                         {225, 350, 2},
                                                         {350, 475, 3},
                                                         {475, 713, 4},
                                                         {713, 838, 3},
                                                         {838, 963, 2},
                                                         {963, 1088, 1}}};
  ASSERT_EQ(boxes.size(), expected.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_EQ(boxes[i].box.x0, expected[i][0]) << i;
    EXPECT_EQ(boxes[i].box.x1, expected[i][1]) << i;
    EXPECT_FLOAT_EQ(boxes[i].box.y0, 420 - 50 * expected[i][2]) << i;
    EXPECT_EQ(boxes[i].box.y1, 420) << i;
    EXPECT_EQ(boxes[i].alpha(), 225u);
  }
  EXPECT_EQ(out.view.facts.bands, 7u);
  EXPECT_EQ(out.view.facts.columns, 8u);  // the last one is of nothing
}

TEST_F(CurveStack, TheCrestIsALineOnTopOfAll) {
  const auto [out, height, drawing] = draw({});
  const auto crest = drawing.of_color(theme::bright);
  ASSERT_EQ(crest.size(), 8u);
  EXPECT_EQ(crest[3].box.x0, 475);
  EXPECT_EQ(crest[3].box.x1, 713);
  EXPECT_FLOAT_EQ(crest[3].box.y0, 219);
  EXPECT_FLOAT_EQ(crest[3].box.y1, 220);
  EXPECT_FLOAT_EQ(crest[7].box.y1, 420);
  EXPECT_EQ(crest[0].alpha(), 120u);
}

TEST_F(CurveStack, TensorsLieInTheOrderInWhichTheyCameWithAnEdgeBetween) {
  const auto [out, height, drawing] = draw({.by = CurveBy::Tensor});
  const Color even = color_of(Category::Activation), odd = mixed(even, theme::plot, 0.25);
  // Each tensor is one box, as long as it lives: what is below it never moves.
  const auto first = drawing.of_color(even), second = drawing.of_color(odd);
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 2u);
  const auto has = [](const std::vector<Drawn>& shapes, float x0, float x1, float y1) {
    return std::ranges::any_of(shapes, [&](const Drawn& shape) {
      return shape.box.x0 == x0 && shape.box.x1 == x1 && shape.box.y1 == y1 &&
             shape.box.y0 == y1 - 49;
    });
  };
  EXPECT_TRUE(has(first, 100, 1088, 420));
  EXPECT_TRUE(has(second, 225, 963, 370));
  EXPECT_TRUE(has(first, 350, 838, 320));
  EXPECT_TRUE(has(second, 475, 713, 270));
}

// At a pixel each, two tensors are one box in the color of the first of them, and have no edge.
TEST_F(CurveStack, BandsTooLowToTellApartAreOne) {
  const auto [out, height, drawing] = draw({.by = CurveBy::Tensor}, 200 * 1024);
  const Color even = color_of(Category::Activation), odd = mixed(even, theme::plot, 0.25);
  for (const Drawn& box : drawing.of_color(even)) EXPECT_LE(box.box.height(), 2.01F);
  EXPECT_THAT(drawing.of_color(odd), IsEmpty());
  const auto boxes = drawing.of_color(even);
  ASSERT_FALSE(boxes.empty());
  const auto two = std::ranges::find_if(
      boxes, [](const Drawn& box) { return box.box.x0 == 475 && box.box.y1 == 418; });
  ASSERT_NE(two, boxes.end());  // the third and the fourth
  EXPECT_EQ(two->box.x1, 713);
  EXPECT_FLOAT_EQ(two->box.y0, 416);
}

TEST_F(CurveStack, WhatIsNotSelectedIsDim) {
  const auto category = draw({}, 4096, {.category = Category::Gradient});
  for (const Drawn& box : category.drawing.of_color(color_of(Category::Activation)))
    EXPECT_EQ(box.alpha(), 70u);
  const auto same = draw({}, 4096, {.category = Category::Activation});
  for (const Drawn& box : same.drawing.of_color(color_of(Category::Activation)))
    EXPECT_EQ(box.alpha(), 225u);
  const auto tensor = draw({.by = CurveBy::Tensor}, 4096, {.buffer = BufferId{1}});
  const Color odd = mixed(color_of(Category::Activation), theme::plot, 0.25);
  const auto boxes = tensor.drawing.of_color(odd);
  ASSERT_EQ(boxes.size(), 2u);  // the first one that ends is the fourth tensor
  EXPECT_EQ(boxes[0].alpha(), 70u);
  EXPECT_EQ(boxes[1].alpha(), 225u);
}

TEST_F(CurveStack, TheMouseFindsTheBandThatIsUnderIt) {
  const auto [out, height, drawing] = draw({.by = CurveBy::Tensor});
  const Bands& bands = *out.places.curves.front();
  const auto at = [&](float x, float y) { return band_under(out.places, bands, height, {x, y}); };
  EXPECT_EQ(at(500, 419), 0u);
  EXPECT_EQ(at(500, 370), 0u);
  EXPECT_EQ(at(500, 369), 1u);
  EXPECT_EQ(at(500, 221), 3u);
  EXPECT_EQ(at(300, 321), 1u);
  EXPECT_FALSE(at(300, 319));   // two are alive
  EXPECT_FALSE(at(1095, 415));  // nobody is, at the end
  EXPECT_FALSE(at(500, 420));   // below the picture
  EXPECT_FALSE(at(99, 415));
}

TEST_F(CurveStack, BeforeAndAfterTheStepThereIsNoBand) {
  LaidOut out(synthetic(4), {-4000, 12'000});  // 16 ns a pixel: the step is at 350 to 850
  const Bands& bands = *out.places.curves.front();
  const Heights height{out.places.memory, 4096};
  EXPECT_FALSE(band_under(out.places, bands, height, {349, 419}));
  EXPECT_TRUE(band_under(out.places, bands, height, {350, 419}));
  EXPECT_FALSE(band_under(out.places, bands, height, {851, 419}));
  Sheet sheet;
  draw_stack(sheet.list(), out.places, bands, height, out.view);
  const auto boxes = sheet.drawing().of_color(color_of(Category::Activation));
  ASSERT_FALSE(boxes.empty());
  EXPECT_EQ(boxes.front().box.x0, 350);
  EXPECT_LE(boxes.back().box.x1, 850);
}

TEST_F(CurveStack, LinesSayHowMuchWhichShareAndWhy) {
  const LaidOut out(synthetic(4), {0, 8000}, {.by = CurveBy::Tensor});
  const Bands& bands = *out.places.curves.front();
  EXPECT_THAT(lines_of(bands, 1, 4),
              ElementsAre(out.opened->describe(BufferId{1}),
                          to_text(kib) + ", 25 % of " + to_text(Bytes{4096}) + " at " +
                              to_text(Nanoseconds{3000}),
                          "activation, not saved"));
  const LaidOut categories(synthetic(4), {0, 8000});
  EXPECT_THAT(
      lines_of(*categories.places.curves.front(), static_cast<std::size_t>(Category::Activation),
               2),
      ElementsAre("activation", to_text(Bytes{2048}) + ", 100 % of " + to_text(Bytes{2048}) +
                                    " at " + to_text(Nanoseconds{1000})));
  EXPECT_EQ(
      lines_of(*categories.places.curves.front(), 0, 8).at(1),
      to_text(Bytes{}) + ", 0 % of " + to_text(Bytes{}) + " at " + to_text(Nanoseconds{7900}));
}

// Three modules: two blocks, and what belongs to none. Every other one is darker.
TEST_F(CurveStack, ModulesGoFromBlueByGreyToYellow) {
  const LaidOut out(synthetic(40), {0, 80'000}, {.by = CurveBy::Module});
  const Bands& bands = *out.places.curves.front();
  ASSERT_EQ(bands.all().size(), 3u);
  EXPECT_EQ(color_of(bands, 0), (Color{0x2B, 0x5C, 0x9E}));
  EXPECT_EQ(color_of(bands, 1), mixed({0x9A, 0x94, 0x86}, theme::plot, 0.2));
  EXPECT_EQ(color_of(bands, 2), (Color{0xFF, 0xEA, 0x46}));
}

// 100 blocks and the rest: the quarter is half way from blue to grey.
TEST_F(CurveStack, TheRampIsStraightBetweenItsColors) {
  const LaidOut out(synthetic(2000), {0, 80'000}, {.by = CurveBy::Module});
  const Bands& bands = *out.places.curves.front();
  ASSERT_EQ(bands.all().size(), 101u);
  EXPECT_EQ(color_of(bands, 24), mixed({0x2B, 0x5C, 0x9E}, {0x9A, 0x94, 0x86}, 0.48));
  EXPECT_EQ(color_of(bands, 74), mixed({0x9A, 0x94, 0x86}, {0xFF, 0xEA, 0x46}, 0.48));
}

TEST_F(CurveStack, SmallerTensorsAreGreyAndOthersHaveTheirCategorysColor) {
  const LaidOut out(synthetic(4), {0, 8000}, {.by = CurveBy::Tensor});
  const Bands& bands = *out.places.curves.front();
  ASSERT_EQ(bands.all().size(), 5u);
  EXPECT_EQ(color_of(bands, 4), static_cast<Color>(theme::folded));
  EXPECT_EQ(color_of(bands, 2), color_of(Category::Activation));
  EXPECT_EQ(color_of(bands, 3), mixed(color_of(Category::Activation), theme::plot, 0.25));
}

TEST_F(CurveStack, TheHighestMomentOfAColumnIsWhatItShows) {
  const LaidOut out(synthetic(4), {0, 8000});
  EXPECT_EQ(state_under(out.places, *out.opened, 224.9F), 1u);
  EXPECT_EQ(state_under(out.places, *out.opened, 225), 2u);
  EXPECT_EQ(state_under(out.places, *out.opened, 712.9F), 4u);  // to 4.9 µs, which are 712.5 px
  EXPECT_EQ(state_under(out.places, *out.opened, 713), 5u);
}

}  // namespace
}  // namespace tidemark::gui::curve_test
