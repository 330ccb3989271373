// Percentages, tolerances and changes are parsed, rounded and printed exactly.
#include "analysis/check/metric.h"

#include <gtest/gtest.h>

namespace tidemark::regression::metric_test {
namespace {

TEST(Percent, IsReadInPartsPerMillion) {
  EXPECT_EQ(parse_percent("5%"), 50'000);
  EXPECT_EQ(parse_percent("0.25 %"), 2'500);
  EXPECT_EQ(parse_percent("0.0001%"), 1);
  EXPECT_EQ(parse_percent("0%"), 0);
  EXPECT_EQ(parse_percent("100%"), million);
}

TEST(Percent, OfAnotherKindIsNotRead) {
  for (const char* text :
       {"", "5", "%", "-1%", "101%", "5 MiB", "five%", "5%%", "nan%", "inf%", "0.00001%", "5  %"})
    EXPECT_EQ(parse_percent(text), std::nullopt) << text;
}

TEST(Share, IsRoundedDownAndExact) {
  EXPECT_EQ(share_of(100, 50'000), 5);
  EXPECT_EQ(share_of(99, 50'000), 4);  // 4.95
  EXPECT_EQ(share_of(0, 50'000), 0);
  // Doubles would lose the last digits of these, and a plain product would overflow.
  EXPECT_EQ(share_of(largest_size, million), largest_size);
  EXPECT_EQ(share_of(largest_size - 1, million), largest_size - 1);
  EXPECT_EQ(share_of(largest_size, 500'000), largest_size / 2);
}

TEST(Tolerance, AllowsAnAmountOrAShare) {
  EXPECT_EQ(allowed(Tolerance{}, 1'000'000), 0);
  EXPECT_EQ(allowed(Tolerance{512, 0}, 1'000'000), 512);
  EXPECT_EQ(allowed(Tolerance{0, 10'000}, 1'000'000), 10'000);
}

TEST(Change, ShowsItsSignAndUnit) {
  EXPECT_EQ(change_text(Metric::Live, 512), "+512 B");
  EXPECT_EQ(change_text(Metric::Live, -512), "−512 B");
  EXPECT_EQ(change_text(Metric::Live, 0), "0 B");
  EXPECT_EQ(change_text(Metric::Step, -1'500'000), "−1.50 ms");
  EXPECT_EQ(percent_text(1000, 31), "+3.10 %");
  EXPECT_EQ(percent_text(1000, -31), "−3.10 %");
  EXPECT_EQ(percent_text(1000, 0), "0.00 %");
  EXPECT_EQ(percent_text(0, 31), "");
}

// A change is never shown as none.
TEST(Change, OfLessThanAHundredthOfAPercentSaysSo) {
  EXPECT_EQ(percent_text(100'000, 5), "+0.01 %");
  EXPECT_EQ(percent_text(100'000, 4), "+<0.01 %");
  EXPECT_EQ(percent_text(100'000, -4), "−<0.01 %");
}

TEST(Tolerance, ShowsAsItWasWritten) {
  EXPECT_EQ(to_text(Metric::Live, Tolerance{}), "0 B");
  EXPECT_EQ(to_text(Metric::Step, Tolerance{}), "0 ns");
  EXPECT_EQ(to_text(Metric::Live, Tolerance{1 << 20, 0}), "1.00 MiB");
  EXPECT_EQ(to_text(Metric::Step, Tolerance{0, 2'500}), "0.25 %");
}

}  // namespace
}  // namespace tidemark::regression::metric_test
