// Conversion of 16-bit numbers: every half, every way of rounding, and both implementations.
#include "kernels/number_formats.h"

#include <bit>
#include <random>

#include "kernels/cpu/rows.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::number_formats_test {
namespace {

// Value of a 16-bit pattern, by the definition of the format.
double defined_value(unsigned bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? NAN : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

bool is_same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(NumberFormats, EveryPatternHasItsDefinedValueAndComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const BFloat16 brain{static_cast<std::uint16_t>(bits)};
    ASSERT_TRUE(is_same(static_cast<double>(to_float(half)), defined_value(bits, 5))) << bits;
    ASSERT_TRUE(is_same(static_cast<double>(to_float(brain)), defined_value(bits, 8))) << bits;
    const bool is_nan_half = std::isnan(to_float(half)), is_nan_brain = std::isnan(to_float(brain));
    ASSERT_EQ(to_float16(to_float(half)).bits, is_nan_half ? bits | 0x200 : bits);
    ASSERT_EQ(to_bfloat16(to_float(brain)).bits, is_nan_brain ? bits | 0x40 : bits);
  }
}

// Between neighbours the nearer one wins, and half way the even one.
TEST(NumberFormats, RoundsToNearestEven) {
  const auto check = [](unsigned bits, int exponent_bits, auto narrow) {
    const double low = defined_value(bits, exponent_bits);
    double high = defined_value(bits + 1, exponent_bits);
    if (std::isinf(high)) high = exponent_bits == 5 ? 65536.0 : 0x1p128;
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    const float below = std::nextafter(middle, 0.0f),
                above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    EXPECT_EQ(narrow(below).bits, bits);
    EXPECT_EQ(narrow(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(narrow(above).bits, bits + 1);
    EXPECT_EQ(narrow(-middle).bits, 0x8000 | (bits % 2 == 0 ? bits : bits + 1));
  };
  for (unsigned bits = 0; bits < 0x7c00; ++bits)
    check(bits, 5, [](float x) { return to_float16(x); });
  for (unsigned bits = 0; bits < 0x7f80; ++bits)
    check(bits, 8, [](float x) { return to_bfloat16(x); });
}

TEST(NumberFormats, NotANumberKeepsSignAndPayload) {
  const float nan = std::bit_cast<float>(0xffa12345u);
  EXPECT_EQ(to_bfloat16(nan).bits, 0xffe1);
  EXPECT_EQ(to_float16(nan).bits, 0xfe00 | (0x212345 >> 13 & 0x3ff));
  EXPECT_TRUE(std::isnan(to_float(to_float16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(to_float16(1e30f).bits, 0x7c00);
  EXPECT_EQ(to_float16(65519.9f).bits, 0x7bff);
}

// The loops over many elements may use the processor's conversion; random bit patterns cover
// NaNs, subnormals and overflow.
TEST(NumberFormats, LoopsGiveTheSameBitsAsSingleConversions) {
  std::mt19937 random(1);
  std::vector<float> from(100'003);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t narrow = (random() & 0x8fffffff) | 0x30000000;  // 2^-31 to 2^1
    from[i] = std::bit_cast<float>(
        i % 2 == 0 ? static_cast<std::uint32_t>(random())
                   : narrow + (static_cast<std::uint32_t>(random() % 20) << 23));
  }
  const auto n = static_cast<std::int64_t>(from.size());
  std::vector<Float16> half(from.size());
  std::vector<BFloat16> brain(from.size());
  cpu::from_floats(from.data(), n, reinterpret_cast<std::byte*>(half.data()), DType::Float16);
  cpu::from_floats(from.data(), n, reinterpret_cast<std::byte*>(brain.data()), DType::BFloat16);
  std::vector<float> back_half(from.size()), back_brain(from.size());
  cpu::to_floats(reinterpret_cast<std::byte*>(half.data()), DType::Float16, n, back_half.data());
  cpu::to_floats(reinterpret_cast<std::byte*>(brain.data()), DType::BFloat16, n, back_brain.data());
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(half[i].bits, to_float16(from[i]).bits) << from[i];
    ASSERT_EQ(brain[i].bits, to_bfloat16(from[i]).bits) << from[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back_half[i]),
              std::bit_cast<std::uint32_t>(to_float(half[i])));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back_brain[i]),
              std::bit_cast<std::uint32_t>(to_float(brain[i])));
  }
}

TEST(NumberFormats, EverySignallingHalfIsReadTheSameInLoops) {
  std::vector<Float16> all(0x10000);
  for (unsigned i = 0; i < 0x10000; ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  cpu::to_floats(reinterpret_cast<std::byte*>(all.data()), DType::Float16, 0x10000, wide.data());
  for (unsigned i = 0; i < 0x10000; ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
              std::bit_cast<std::uint32_t>(to_float(all[i])));
}

}  // namespace
}  // namespace tidemark::number_formats_test
