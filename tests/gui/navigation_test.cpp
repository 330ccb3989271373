// Zoom keeps the place under the mouse, pan stops at the margins, ticks are round, labels differ.
#include "gui/navigation.h"

#include <gtest/gtest.h>

namespace tidemark::gui::navigation_test {
namespace {

constexpr Limits of_a_million{1e6};

TEST(Navigation, ZoomKeepsThePlaceUnderTheMouse) {
  const Range before{100'000, 300'000};
  const Range after = zoomed(before, 150'000, 0.5, of_a_million);
  EXPECT_DOUBLE_EQ(after.span(), 100'000);
  EXPECT_DOUBLE_EQ((150'000 - after.begin) / after.span(), 0.25);
}

TEST(Navigation, ZoomStopsAtBothEnds) {
  Range range = whole(of_a_million);
  for (int i = 0; i < 200; ++i) range = zoomed(range, 5000, 0.8, of_a_million);
  EXPECT_NEAR(range.span(), of_a_million.narrowest, 1e-6);
  EXPECT_LE(range.begin, 5000);
  EXPECT_GE(range.end, 5000);
  for (int i = 0; i < 200; ++i) range = zoomed(range, 5000, 1.25, of_a_million);
  EXPECT_NEAR(range.begin, whole(of_a_million).begin, 1e-3);
  EXPECT_NEAR(range.end, whole(of_a_million).end, 1e-3);
}

TEST(Navigation, PanStopsAtTheMargins) {
  Range range{0, 100'000};
  range = panned(range, 0.5, of_a_million);
  EXPECT_EQ(range, (Range{50'000, 150'000}));
  for (int i = 0; i < 100; ++i) range = panned(range, 1, of_a_million);
  EXPECT_DOUBLE_EQ(range.end, whole(of_a_million).end);
  EXPECT_NEAR(range.span(), 100'000, 1e-6);
}

TEST(Navigation, AStepOfNoLengthCanBeShown) {
  const Limits tiny{1};
  const Range range = clamped({0, 1}, tiny);
  EXPECT_GT(range.span(), 0);
  EXPECT_GT(zoomed(range, 0.5, 0.1, tiny).span(), 0);
}

TEST(Navigation, TicksAreRoundAndApart) {
  for (const double spacing : {0.3, 1.0, 7.0, 130.0, 99'999.0, 3.2e8}) {
    const Ticks ticks = decimal_ticks({5, 1e9}, spacing);
    EXPECT_GE(ticks.step, spacing);
    EXPECT_LT(ticks.step, std::max(1.01, 2.6 * spacing));
    EXPECT_GE(ticks.first, 5);
    EXPECT_DOUBLE_EQ(std::remainder(ticks.first, ticks.step), 0);
  }
  EXPECT_EQ(decimal_ticks({0, 100}, 21).step, 50);
  EXPECT_EQ(binary_ticks({0, 1e6}, 3000).step, 4096);
}

TEST(Navigation, LabelsTellNeighboursApart) {
  EXPECT_EQ(tick_text(0, 1e6), "0");
  EXPECT_EQ(tick_text(2e6, 1e6), "2 ms");
  EXPECT_EQ(tick_text(2.5e6, 5e5), "2.5 ms");
  EXPECT_EQ(tick_text(1'000'050, 50), "1.00005 ms");
  // Beyond a second neighbours differ by a millionth of the unit.
  EXPECT_EQ(tick_text(1.234567e9, 1000), "1.234567 s");
  EXPECT_EQ(tick_text(1.234568e9, 1000), "1.234568 s");
  EXPECT_EQ(tick_text(90.0e9, 50), "90.00000000 s");
  EXPECT_EQ(byte_tick_text(512.0 * 1024 * 1024, 512.0 * 1024 * 1024), "512 MiB");
  EXPECT_EQ(byte_tick_text(1536.0 * 1024 * 1024, 512.0 * 1024 * 1024), "1.5 GiB");
  EXPECT_EQ(byte_tick_text(1073742848, 1024), "1.000000954 GiB");
}

}  // namespace
}  // namespace tidemark::gui::navigation_test
