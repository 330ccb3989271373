// Ticks and labels of both axes at the borders of their units, and ranges at the ends of the step.
#include <gtest/gtest.h>

#include "gui/navigation.h"

namespace tidemark::gui::axis_test {
namespace {

struct Label {
  double value, step;
  const char* text;
};

TEST(TimeLabels, ChangeTheirUnitWhereItIsOne) {
  for (const auto& [value, step, text] :
       {Label{0, 1, "0"}, Label{1, 1, "1 ns"}, Label{999, 1, "999 ns"}, Label{1000, 1000, "1 µs"},
        Label{1000, 500, "1.0 µs"}, Label{1500, 500, "1.5 µs"}, Label{999'999, 1, "999.999 µs"},
        Label{1e6, 1e6, "1 ms"}, Label{1.25e6, 250'000, "1.25 ms"}, Label{1e9, 1e8, "1.0 s"},
        Label{61e9, 1e9, "61 s"}, Label{-20'000, 10'000, "-20 µs"}})
    EXPECT_EQ(tick_text(value, step), text) << value;
}

TEST(ByteLabels, ChangeTheirUnitWhereItIsOne) {
  constexpr double kib = 1024, mib = 1024 * kib, gib = 1024 * mib, tib = 1024 * gib;
  for (const auto& [value, step, text] :
       {Label{0, 1, "0"}, Label{1023, 1, "1023 B"}, Label{kib, kib, "1 KiB"},
        Label{kib, 512, "1.0 KiB"}, Label{1.5 * kib, 256, "1.50 KiB"}, Label{mib, mib, "1 MiB"},
        Label{mib - kib, kib, "1023 KiB"}, Label{1.25 * gib, gib / 4, "1.25 GiB"},
        Label{80 * gib, 16 * gib, "80 GiB"}, Label{2 * tib, tib, "2 TiB"}})
    EXPECT_EQ(byte_tick_text(value, step), text) << value;
}

struct Spacing {
  double spacing, step;
};

TEST(Ticks, OfTimesAreOneTwoOrFiveOfATenPower) {
  for (const auto& [spacing, step] :
       {Spacing{0.2, 1}, Spacing{1, 1}, Spacing{1.5, 2}, Spacing{2, 2}, Spacing{3, 5},
        Spacing{7, 10}, Spacing{20, 20}, Spacing{21, 50}, Spacing{60, 100}, Spacing{4e8, 5e8}})
    EXPECT_DOUBLE_EQ(decimal_ticks({0, 1e9}, spacing).step, step) << spacing;
}

TEST(Ticks, OfBytesArePowersOfTwo) {
  for (const auto& [spacing, step] : {Spacing{0.1, 1}, Spacing{1, 1}, Spacing{3, 4}, Spacing{4, 4},
                                      Spacing{5, 8}, Spacing{1e9, 1073741824}})
    EXPECT_EQ(binary_ticks({0, 1e12}, spacing).step, step) << spacing;
}

TEST(Ticks, BeginAtTheFirstMultipleInSight) {
  EXPECT_EQ(decimal_ticks({11, 100}, 10).first, 20);
  EXPECT_EQ(decimal_ticks({20, 100}, 10).first, 20);
  EXPECT_EQ(decimal_ticks({-15, 100}, 10).first, -10);
  EXPECT_EQ(binary_ticks({4097, 9000}, 4096).first, 8192);
}

constexpr Limits limits{1000};

TEST(Ranges, AllIsTheStepWithAMarginOfTwoPercent) {
  EXPECT_EQ(whole(limits), (Range{-20, 1020}));
  EXPECT_EQ(clamped({-500, 5000}, limits), (Range{-20, 1020}));
}

TEST(Ranges, ThatLeaveTheStepComeBackWithTheirWidth) {
  EXPECT_EQ(clamped({-300, 100}, limits), (Range{-20, 380}));
  EXPECT_EQ(clamped({900, 1300}, limits), (Range{620, 1020}));
  EXPECT_EQ(panned({100, 300}, -0.25, limits), (Range{50, 250}));
}

TEST(Ranges, AroundSomethingLeaveATenthOfItAtEachSide) {
  EXPECT_EQ(around(200, 400, limits), (Range{180, 420}));
  const Range of_a_moment = around(500, 500, limits);
  EXPECT_DOUBLE_EQ(of_a_moment.span(), limits.narrowest);
  EXPECT_DOUBLE_EQ((of_a_moment.begin + of_a_moment.end) / 2, 500);
}

}  // namespace
}  // namespace tidemark::gui::axis_test
