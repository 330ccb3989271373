// Floats of eight bits: the format against its definition, and groups that become codes and come
// back.
#include "kernels/float8/float8.h"

#include "kernels/float8/e4m3.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::float8_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// By the definition of e4m3: bias 7, no infinity, and NaN is all ones.
double defined_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 3) & 15, fraction = static_cast<int>(bits) & 7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && fraction == 7) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -9);
  return sign * std::ldexp(8 + fraction, exponent - 7 - 3);
}

/// The nearest of all 254 numbers, of two the even one; those beyond the largest become it.
unsigned nearest(double x) {
  unsigned best = 0;
  for (unsigned bits = 0; bits < 0x7f; ++bits) {
    const double distance = std::abs(defined_value(bits) - std::abs(x));
    const double least = std::abs(defined_value(best) - std::abs(x));
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

TEST(Float8, EveryCodeHasItsDefinedValueAndComesBack) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    const float x = to_float(Float8{static_cast<std::uint8_t>(bits)});
    const double wanted = defined_value(bits);
    ASSERT_EQ(std::isnan(x), std::isnan(wanted)) << bits;
    ASSERT_EQ(std::signbit(x), (bits & 0x80) != 0) << bits;
    ASSERT_TRUE(std::isnan(wanted) || static_cast<double>(x) == wanted) << bits;
    ASSERT_EQ(to_float8(x).bits, std::isnan(wanted) ? 0x7f : bits);
  }
  EXPECT_EQ(defined_value(0x7e), static_cast<double>(float8_largest));
}

// All signs, exponents and upper digits of fp32, and what is next to each middle of two codes.
TEST(Float8, RoundsToTheNearestOfAllCodes) {
  for (unsigned upper = 0; upper < 0x10000; ++upper) {
    const float x = format::float_of(upper << 16);
    if (std::isnan(x)) continue;
    ASSERT_EQ(to_float8(x).bits, nearest(static_cast<double>(x))) << x;
  }
  for (unsigned bits = 0; bits < 0x7e; ++bits) {
    const auto middle = static_cast<float>((defined_value(bits) + defined_value(bits + 1)) / 2);
    for (const float x : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, infinity)})
      ASSERT_EQ(to_float8(x).bits, nearest(static_cast<double>(x))) << x;
  }
}

TEST(Float8, SaturatesAndKeepsNotANumber) {
  for (const float x : {448.0f, 463.9f, 464.0f, 480.0f, 1e30f, infinity}) {
    EXPECT_EQ(to_float8(x).bits, 0x7e) << x;
    EXPECT_EQ(to_float8(-x).bits, 0xfe) << x;
  }
  EXPECT_EQ(to_float8(NAN).bits, 0x7f);
  EXPECT_EQ(to_float8(-NAN).bits, 0x7f);
}

/// What a value of so many groups is coded as, and what comes back.
struct Coded {
  Coded(const Shape& shape, const Values& values, std::int64_t groups, DType dtype = DType::Float32)
      : x(shape, values, dtype),
        codes(shape, DType::Float8),
        magnitudes({groups}),
        back(shape, dtype) {
    Workspace workspace;
    Call there, here;
    there.pass = Pass::Quantize, here.pass = Pass::Dequantize;
    there.inputs = {x.array()}, there.outputs = {codes.array(), magnitudes.array()};
    here.inputs = there.outputs, here.outputs = {back.array()};
    run(there, workspace);
    run(here, workspace);
    EXPECT_TRUE(codes.is_intact() && magnitudes.is_intact() && back.is_intact());
  }
  TestArray x, codes, magnitudes, back;
};

TEST(Float8, ValuesAreCodesTimesTheScaleOfTheirGroup) {
  struct Case {
    Shape shape;
    std::int64_t groups;
  };
  // Groups shorter and longer than a run, one for all, and one per row.
  for (const Case& c : {Case{{1}, 1}, Case{{2, 5, 96}, 60}, Case{{3, 197}, 3}, Case{{3, 1700}, 1},
                        Case{{2, 4096}, 2}, Case{{4, 1}, 1}})
    for (const DType dtype : data_dtypes) {
      Coded coded(c.shape, random_values(c.shape, 1, 3, dtype), c.groups, dtype);
      const Values x = coded.x.values(), codes = coded.codes.values(), back = coded.back.values();
      const std::size_t stretch = x.size() / static_cast<std::size_t>(c.groups);
      for (std::size_t i = 0; i < x.size(); ++i) {
        double largest = 0;
        for (std::size_t k = i / stretch * stretch; k < (i / stretch + 1) * stretch; ++k)
          largest = std::max(largest, std::abs(x[k]));
        ASSERT_EQ(coded.magnitudes.values()[i / stretch], largest);
        const auto single = static_cast<float>(largest);
        const float scaled = static_cast<float>(x[i]) * (448 / single);
        ASSERT_EQ(codes[i], nearest(static_cast<double>(scaled)));
        const double decoded = defined_value(static_cast<unsigned>(codes[i])) * largest / 448;
        ASSERT_NEAR(back[i], decoded, 2 * epsilon_of(dtype) * std::abs(decoded));
        // Four bits of each digit are right, down to what is subnormal beside the largest.
        ASSERT_NEAR(back[i], x[i],
                    (0x1p-4 + 2 * epsilon_of(dtype)) * std::abs(x[i]) + 0x1p-10 * largest / 448);
      }
    }
}

// The last element of a group and the first of the next are under different scales.
TEST(Float8, AnOutlierTakesNoDigitsFromOtherGroups) {
  Values x(64, 0.001);
  x[16] = 1e6;
  const Values apart = Coded({64}, x, 4).back.values(), together = Coded({64}, x, 1).back.values();
  EXPECT_NEAR(apart[15], 0.001, 1e-8);
  EXPECT_EQ(apart[16], 1e6);
  EXPECT_EQ(apart[17], 0);
  EXPECT_NEAR(apart[32], 0.001, 1e-8);
  EXPECT_EQ(together[15], 0);
}

TEST(Float8, ZerosAndTinyGroupsComeBackAsZeros) {
  const Values zeros = Coded({4}, {0, -0.0, 0, 0}, 1).back.values();
  EXPECT_EQ(zeros, Values(4, 0));
  EXPECT_TRUE(std::signbit(zeros[1]));
  EXPECT_EQ(Coded({2}, {0x1p-111, -0x1p-140}, 1).back.values(), Values(2, 0));
  EXPECT_EQ(Coded({2}, {0x1p-110, 0}, 1).back.values(), (Values{0x1p-110, 0}));
  const double most = static_cast<double>(std::numeric_limits<float>::max());
  EXPECT_NEAR(Coded({2}, {most, 1}, 1).back.values()[0] / most, 1, 1e-6);
}

TEST(Float8, WhatIsNoNumberShowsInItsGroupAlone) {
  for (const double odd :
       {static_cast<double>(NAN), static_cast<double>(infinity), -static_cast<double>(infinity)}) {
    Values x(32, 1);
    x[20] = odd;
    const Values back = Coded({32}, x, 2).back.values();
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(std::isnan(back[i]), i >= 16) << i;
  }
}

}  // namespace
}  // namespace tidemark::cpu::float8_test
