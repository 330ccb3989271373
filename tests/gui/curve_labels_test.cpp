// Where labels stand over the memory curve: beside it, not on each other, and within its box.
#include "gui/panels/curve_labels.h"

#include <gmock/gmock.h>

#include "tests/gui/laid_out.h"

namespace tidemark::gui::curve_labels_test {
namespace {

// The curve is 200 px of 4 KiB, and full of what is alive up to its crest.
class CurveLabelPlaces : public WithFont {
 protected:
  CurveLabelPlaces() : out_(synthetic(4), {0, 8000}), height_{out_.places.memory, 8192} {}
  CurveLabels labels() { return {out_.places, *out_.opened, {}, height_}; }

  LaidOut out_;
  Heights height_;
  Sheet sheet_;
};

TEST_F(CurveLabelPlaces, StandWhereTheyHideLeast) {
  CurveLabels labels = this->labels();
  // At 4 KiB of 8 the crest is at y = 320; the first place is below it, the second above.
  const std::array<Box, 2> places = {Box{500, 350, 600, 368}, Box{500, 240, 600, 258}};
  labels.put(sheet_.list(), "x", theme::text, places);
  EXPECT_EQ(labels.covered(), 0);
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.texts.size(), 1u);
  EXPECT_LT(drawing.texts[0].box.y1, 260);
  EXPECT_NEAR((drawing.texts[0].box.x0 + drawing.texts[0].box.x1) / 2, 550, 1);
}

TEST_F(CurveLabelPlaces, CountThePixelsThatTheyHide) {
  CurveLabels labels = this->labels();
  // Wholly under the crest: 100 times 18.
  labels.put(sheet_.list(), "x", theme::text, std::array{Box{500, 350, 600, 368}});
  EXPECT_FLOAT_EQ(labels.covered(), 1800);
  // The lower 8 of 18 pixels.
  labels.put(sheet_.list(), "y", theme::text, std::array{Box{600, 310, 700, 328}});
  EXPECT_FLOAT_EQ(labels.covered(), 2600);
}

TEST_F(CurveLabelPlaces, DoNotStandOnEachOther) {
  CurveLabels labels = this->labels();
  const std::array<Box, 2> places = {Box{500, 240, 600, 258}, Box{500, 350, 600, 368}};
  labels.put(sheet_.list(), "one", theme::text, places);
  labels.put(sheet_.list(), "two", theme::text, places);  // rather on the curve
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.texts.size(), 2u);
  EXPECT_LT(drawing.texts[0].box.y0, 260);
  EXPECT_GT(drawing.texts[1].box.y0, 340);
}

TEST_F(CurveLabelPlaces, KeepWithinTheCurvesBox) {
  CurveLabels labels = this->labels();
  const std::array<Box, 2> places = {Box{500, 210, 600, 228}, Box{500, 310, 510, 328}};
  // A part above it is worse than 96 px of the curve.
  labels.put(sheet_.list(), "x", theme::text, places);
  EXPECT_GT(sheet_.drawing().texts.at(0).box.y0, 290);
  EXPECT_GT(labels.covered(), 0);
}

TEST_F(CurveLabelPlaces, OfAPeakStandBesideItsTipNotOnIt) {
  CurveLabels labels = this->labels();
  labels.put_above(sheet_.list(), "peak", theme::bright, {475, 320});
  const Drawing drawing = sheet_.drawing();
  const Drawn& text = drawing.texts.at(0);
  EXPECT_GT(text.box.x0, 475);  // the first place of several that hide nothing
  EXPECT_LT(text.box.y1, 320);
  const auto tip = drawing.of_color(theme::bright);
  ASSERT_GE(tip.size(), 1u);
  EXPECT_NEAR((tip[0].box.x0 + tip[0].box.x1) / 2, 475, 0.1);
  EXPECT_NEAR(tip[0].box.y1, 320, 1.5);
}

TEST_F(CurveLabelPlaces, AtTheRightEndStandLeft) {
  CurveLabels labels = this->labels();
  labels.put_above(sheet_.list(), "a long text at the end", theme::bright, {1098, 320});
  EXPECT_LT(sheet_.drawing().texts.at(0).box.x1, 1098);
}

TEST_F(CurveLabelPlaces, AlongALineStandAboveItAtTheLeftIfNothingIsThere) {
  CurveLabels labels = this->labels();
  labels.put_along(sheet_.list(), "capacity", theme::alarm, 280);
  const Drawn text = sheet_.drawing().texts.at(0);
  EXPECT_LT(text.box.y1, 280);
  EXPECT_NEAR(text.box.x0, 104 + 0.3F * 14, 1.5);
  // A second one of the same height goes to the right end.
  labels.put_along(sheet_.list(), "budget", theme::alarm, 280);
  const Drawn second = sheet_.drawing().texts.at(1);
  EXPECT_LT(second.box.y1, 280);
  EXPECT_NEAR(second.box.x1, 1096 - 0.3F * 14, 1.5);
}

// Another recording's line is hidden where a label crosses it, not below it.
TEST_F(CurveLabelPlaces, HideOfALineOnlyWhatTheyCross) {
  LaidOut other(synthetic(4), {0, 8000});
  out_.places.curves.push_back(other.places.curves.front());
  CurveLabels over(out_.places, *out_.opened, {other.opened.get()}, height_);
  over.put(sheet_.list(), "x", theme::text, std::array{Box{500, 311, 600, 329}});
  // 9 of 18 px are under the crest, 100 wide; and 25 columns of the line count twice.
  EXPECT_FLOAT_EQ(over.covered(), 900 + 25 * 4 * 2);
  CurveLabels below(out_.places, *out_.opened, {other.opened.get()}, height_);
  below.put(sheet_.list(), "x", theme::text, std::array{Box{500, 350, 600, 368}});
  EXPECT_FLOAT_EQ(below.covered(), 1800);
}

TEST(HeightsOfBytes, GoFromTheBottomUp) {
  const Heights whole{{0, 100, 10, 300}, 1000};
  EXPECT_FLOAT_EQ(whole(Bytes{0}), 300);
  EXPECT_FLOAT_EQ(whole(Bytes{1000}), 100);
  EXPECT_FLOAT_EQ(whole(Bytes{250}), 250);
  const Heights zoomed{{0, 100, 10, 300}, 1000, 500};
  EXPECT_FLOAT_EQ(zoomed(Bytes{500}), 300);
  EXPECT_FLOAT_EQ(zoomed(Bytes{750}), 200);
}

}  // namespace
}  // namespace tidemark::gui::curve_labels_test
