// The fp32 functions against double: the errors that their header states.
#include "kernels/cpu/elementary.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace tidemark::cpu::elementary_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Largest error over [low, high] in units of the wanted value's last place (of the smallest normal
// number's below that).
double worst_ulps(float low, float high, const std::function<float(float)>& f,
                  const std::function<double(double)>& wanted) {
  double worst = 0;
  const auto steps = 200'000;
  for (int i = 0; i <= steps; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / steps;
    const double exact = wanted(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(f(x)) - exact) / ulp);
  }
  return worst;
}

double exact_cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

TEST(Elementary, Exponential) {
  const auto f = [](float x) { return exp_of(x); };
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(worst_ulps(-87.3f, 88.7f, f, exact), 2);
  EXPECT_LE(worst_ulps(-1, 1, f, exact), 2);
  EXPECT_LE(worst_ulps(-104, -87, f, exact), 1);  // subnormal: of the smallest normal's ulp
  EXPECT_EQ(exp_of(0), 1);
  EXPECT_EQ(exp_of(88.8f), infinity);
  EXPECT_EQ(exp_of(infinity), infinity);
  EXPECT_EQ(exp_of(-infinity), 0);
  EXPECT_EQ(exp_of(-1e30f), 0);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
  EXPECT_TRUE(std::isnan(exp_of(-NAN)));
}

TEST(Elementary, Logistic) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst_ulps(-87, 20, logistic, exact), 3);
  EXPECT_EQ(logistic(infinity), 1);
  EXPECT_EQ(logistic(-infinity), 0);
  EXPECT_TRUE(std::isnan(logistic(NAN)));
}

TEST(Elementary, Tanh) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(worst_ulps(-10, 10, tanh_of, exact), 2);
  EXPECT_LE(worst_ulps(-0.7f, 0.7f, tanh_of, exact), 2);
  EXPECT_LE(worst_ulps(0, 1e-30f, tanh_of, exact), 1);
  EXPECT_EQ(tanh_of(infinity), 1);
  EXPECT_EQ(tanh_of(-infinity), -1);
  EXPECT_TRUE(std::signbit(tanh_of(-0.0f)));
  EXPECT_TRUE(std::isnan(tanh_of(NAN)));
}

TEST(Elementary, NormalDistribution) {
  const auto cdf = [](float x) { return normal(x).cdf; };
  const auto bell = [](float x) { return normal(x).bell; };
  const auto exact_bell = [](double x) { return std::exp(-x * x / 2); };
  EXPECT_LE(worst_ulps(-13, 8, cdf, exact_cdf), 8);
  EXPECT_LE(worst_ulps(-1, 1, cdf, exact_cdf), 8);
  EXPECT_LE(worst_ulps(-13, 13, bell, exact_bell), 2);
  EXPECT_EQ(cdf(0), 0.5f);
  EXPECT_EQ(cdf(infinity), 1);
  EXPECT_EQ(cdf(-infinity), 0);
  EXPECT_TRUE(std::isnan(cdf(NAN)));
}

}  // namespace
}  // namespace tidemark::cpu::elementary_test
