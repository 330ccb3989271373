// Where one unit, or one more decimal, begins: at ten of it, and never with a digit too many.
#include "cli/text/units_text.h"

#include <gtest/gtest.h>

namespace tidemark::cli::units_text_test {
namespace {

using namespace literals;

TEST(SizeUnit, BeginsAtTenOfIt) {
  for (const auto& [name, unit] : {std::pair{"KiB", 1_KiB}, {"MiB", 1_MiB}, {"GiB", 1_GiB}}) {
    const Bytes ten{10 * unit.count};
    EXPECT_EQ(SizeUnit(ten).name(), name);
    EXPECT_NE(SizeUnit(ten - 1_B).name(), name);
  }
  EXPECT_EQ(SizeUnit(10240_GiB).with_unit(1024_GiB), "1.00 TiB");
}

// As many as the largest of the column needs for three digits or more.
TEST(SizeUnit, HasDecimalsAsTheLargestNeeds) {
  EXPECT_EQ(SizeUnit(10_MiB)(1_MiB), "1.00");
  EXPECT_EQ(SizeUnit(100_MiB - 1_KiB)(1_MiB), "1.00");
  EXPECT_EQ(SizeUnit(100_MiB)(1_MiB), "1.0");
  EXPECT_EQ(SizeUnit(1000_MiB - 1_KiB)(1_MiB), "1.0");
  EXPECT_EQ(SizeUnit(1000_MiB)(1_MiB), "1");
  EXPECT_EQ(SizeUnit(10_B)(3_B), "3");  // bytes are whole
}

TEST(TimeUnit, BeginsAtTenOfIt) {
  EXPECT_EQ(TimeUnit(Nanoseconds{9'999}).name(), "ns");
  EXPECT_EQ(TimeUnit(Nanoseconds{10'000}).name(), "µs");
  EXPECT_EQ(TimeUnit(Nanoseconds{9'999'999}).name(), "µs");
  EXPECT_EQ(TimeUnit(Nanoseconds{10'000'000}).name(), "ms");
  EXPECT_EQ(TimeUnit(Nanoseconds{10'000'000'000}).name(), "s");
}

TEST(TimeUnit, HasDecimalsAsTheLongestNeeds) {
  const Nanoseconds one{1'000'000};
  EXPECT_EQ(TimeUnit(99 * one)(one), "1.00");
  EXPECT_EQ(TimeUnit(100 * one)(one), "1.0");
  EXPECT_EQ(TimeUnit(1000 * one)(one), "1");
}

TEST(TimeUnit, ShowsNoNegativeZero) {
  const TimeUnit unit(Nanoseconds{20'000'000});
  EXPECT_EQ(unit(Nanoseconds{-1'500'000}), "−1.50");
  EXPECT_EQ(unit(Nanoseconds{-4'000}), "0.00");
  EXPECT_EQ(unit(Nanoseconds{-6'000}), "−0.01");
  EXPECT_EQ(unit(Nanoseconds{}), "0.00");
}

TEST(ChangeText, BeginsAtATwentiethOfAPercent) {
  EXPECT_EQ(change_text(1.0004), "0.0 %");
  EXPECT_EQ(change_text(1.0006), "+0.1 %");
  EXPECT_EQ(change_text(0.9994), "−0.1 %");
  EXPECT_EQ(change_text(2), "+100.0 %");
}

TEST(FlopText, BeginsAUnitAtTenOfIt) {
  EXPECT_EQ(flop_text(9), "9 FLOP");
  EXPECT_EQ(flop_text(9'999), "9999 FLOP");
  EXPECT_EQ(flop_text(10'000), "10.00 kFLOP");
  EXPECT_EQ(flop_text(1e7), "10.00 MFLOP");
  EXPECT_EQ(flop_text(123.4e9), "123.4 GFLOP");
  EXPECT_EQ(flop_text(9.8764e12), "9876 GFLOP");
  EXPECT_EQ(flop_text(10e12), "10.00 TFLOP");
  EXPECT_EQ(flop_text(12.5e15), "12.50 PFLOP");
}

TEST(CountText, HasThreeDigitsAtMost) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1'000), "1.0 k");
  EXPECT_EQ(count_text(99'949), "99.9 k");
  EXPECT_EQ(count_text(99'950), "100 k");
  EXPECT_EQ(count_text(999'499), "999 k");
  EXPECT_EQ(count_text(999'500), "1.0 M");
  EXPECT_EQ(count_text(999'499'999), "999 M");
  EXPECT_EQ(count_text(999'500'000), "1.0 B");
}

}  // namespace
}  // namespace tidemark::cli::units_text_test
