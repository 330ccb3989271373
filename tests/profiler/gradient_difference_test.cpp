// Differences are relative to a parameter's own gradient; NaN and missing ones count as infinite.
#include "profiler/gradient_difference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tidemark::profiler::gradient_difference_test {
namespace {

TEST(GradientDifference, IsRelativeToTheParametersOwnGradient) {
  const NamedValues reference = {{"a", {3, 4}}, {"b", {1, 0}}};
  const NamedValues found = {{"a", {3, 4.5}}, {"b", {1, 0}}};
  const GradientDifference difference = gradient_difference(found, reference);
  EXPECT_DOUBLE_EQ(difference.largest, 0.1);
  EXPECT_EQ(difference.parameter, "a");
  EXPECT_FALSE(difference.bit_identical);
}

TEST(GradientDifference, EqualIsBitIdentical) {
  const NamedValues values = {{"a", {1, 2}}};
  EXPECT_TRUE(gradient_difference(values, values).bit_identical);
  EXPECT_EQ(gradient_difference(values, values).largest, 0);
  EXPECT_EQ(gradient_difference(values, values).overall, 0);
  EXPECT_EQ(gradient_difference({{"a", {0}}}, {{"a", {0}}}).overall, 0);
}

// ‖(0, 0.5, 0, 2)‖ = √4.25 beside ‖(3, 4, 12, 0)‖ = 13, although b alone is a sixth off.
TEST(GradientDifference, OfAllTogetherIsRelativeToAll) {
  const NamedValues reference = {{"a", {3, 4}}, {"b", {12, 0}}};
  const NamedValues found = {{"a", {3, 4.5}}, {"b", {12, 2}}};
  const GradientDifference difference = gradient_difference(found, reference);
  EXPECT_DOUBLE_EQ(difference.overall, std::sqrt(4.25) / 13);
  EXPECT_DOUBLE_EQ(difference.largest, 2.0 / 12);
}

// "zero" would be 100 % off; beside gradients of about 1 it is 1e-6 of a thousandth.
TEST(GradientDifference, RoundingOfAZeroGradientCountsLittle) {
  const NamedValues reference = {{"a", {1, -1, 1, 1}}, {"zero", {1e-9}}};
  const NamedValues found = {{"a", {1, -1, 1, 1}}, {"zero", {-1e-9}}};
  const double largest = gradient_difference(found, reference).largest;
  EXPECT_GT(largest, 1e-6);
  EXPECT_LT(largest, 1e-5);
}

TEST(GradientDifference, NotANumberAndMissingOnesAreInfinitelyFar) {
  const NamedValues reference = {{"a", {1}}, {"b", {1}}};
  for (const NamedValues& found : {NamedValues{{"a", {NAN}}, {"b", {1}}},
                                   {{"a", {1}}},
                                   {{"a", {1}}, {"b", {1}}, {"c", {1}}}}) {
    const GradientDifference difference = gradient_difference(found, reference);
    EXPECT_TRUE(std::isinf(difference.largest));
    EXPECT_TRUE(std::isinf(difference.overall));
  }
}

}  // namespace
}  // namespace tidemark::profiler::gradient_difference_test
