// Activations by their output: values and sides against the exact ones, slopes against derivatives
// in double at the x that the value came from.
#include "kernels/inverted/inverted.h"

#include "kernels/activation/activation.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::inverted_test {
namespace {

double gelu_slope(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
double tanh_gelu_slope(double x) {
  const double root = std::sqrt(2 / M_PI), u = root * (x + 0.044715 * x * x * x);
  const double tanh_u = std::tanh(u);
  return 0.5 * (1 + tanh_u) + 0.5 * x * (1 - tanh_u * tanh_u) * root * (1 + 3 * 0.044715 * x * x);
}
double silu_slope(double x) {
  const double share = 1 / (1 + std::exp(-x));
  return share * (1 + x * (1 - share));
}

struct Inverted {
  const char* name;
  double (*slope)(double);
  double minimum;  ///< where the slope is 0, to seven digits
  OpKind kind;
  bool tanh_approx;
  Kernel exact, forward, backward;
};
const std::array all = {
    Inverted{"gelu", gelu_slope, -0.7517915, OpKind::Gelu, false, gelu_forward,
             inverted_gelu_forward, inverted_gelu_backward},
    Inverted{"tanh gelu", tanh_gelu_slope, -0.7524614, OpKind::Gelu, true, gelu_forward,
             inverted_tanh_gelu_forward, inverted_tanh_gelu_backward},
    Inverted{"silu", silu_slope, -1.2784645, OpKind::Silu, false, silu_forward,
             inverted_silu_forward, inverted_silu_backward}};

/// x as it is stored, its value, which side it was on, and dx for gradients of 1.
struct There {
  Values x, y, sides, dx;
};
There there_and_back(const Inverted& f, const Values& given, DType dtype, Lie lie = Lie::Dense) {
  Workspace workspace;
  const Shape shape{static_cast<std::int64_t>(given.size())};
  TestArray x(shape, given, dtype, lie), y(shape, dtype, lie), dx(shape, DType::Float32, lie),
      sides(Shape{(shape[0] + 7) / 8}, DType::UInt8), dy(shape, Values(given.size(), 1));
  f.forward(forward(OpKind::Opaque, {x.array()}, {y.array(), sides.array()}), workspace);
  f.backward(backward(OpKind::Opaque, {absent(shape)}, {y.array(), sides.array()}, {dy.array()},
                      {dx.array()}),
             workspace);
  EXPECT_TRUE(y.is_intact() && sides.is_intact() && dx.is_intact());
  return {x.values(), y.values(), sides.values(), dx.values()};
}

Values evenly(double from, double to, int count) {
  Values x;
  for (int i = 0; i < count; ++i) x.push_back(from + (to - from) * i / (count - 1));
  return x;
}

TEST(InvertedActivation, ForwardIsTheExactOneToTheBitAndSidesAreThoseOfTheMinimum) {
  Workspace workspace;
  for (const Inverted& f : all)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{3, 1023}, Shape{2, 5, 7}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies) {
          TestArray x(shape, random_values(shape, 8, 4), dtype, lie), y(shape, dtype, lie),
              exact(shape, dtype), sides(Shape{(numel(shape) + 7) / 8}, DType::UInt8);
          f.forward(forward(OpKind::Opaque, {x.array()}, {y.array(), sides.array()}), workspace);
          f.exact(forward(f.kind, {x.array()}, {exact.array()}, {.tanh_approx = f.tanh_approx}),
                  workspace);
          ASSERT_EQ(y.values(), exact.values()) << f.name;
          const Values numbers = x.values(), bytes = sides.values();
          for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
            const int side = static_cast<int>(bytes[i / 8]) >> (i % 8) & 1;
            ASSERT_EQ(side, i < numbers.size() && numbers[i] > f.minimum ? 1 : 0) << f.name << i;
          }
        }
}

// A value has an error of a few units of its last place, 1.5e-7 at the minimum, which is one of
// that divided by the distance from the minimum in the slope.
TEST(InvertedActivation, SlopeIsThatWhereTheValueCameFrom) {
  for (const Inverted& f : all)
    for (const Values& x : {evenly(-14, 14, 20001), evenly(f.minimum - 0.1, f.minimum + 0.1, 2001),
                            evenly(-1e-3, 1e-3, 201), Values{1e3, 1e30}}) {
      const There found = there_and_back(f, x, DType::Float32);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double away = std::abs(found.x[i] - f.minimum);
        const double rounding = std::min(1.5e-7 / std::max(away, 1e-9), 3e-4);
        ASSERT_NEAR(found.dx[i], f.slope(found.x[i]), 3e-5 + rounding) << f.name << " " << x[i];
      }
    }
}

// Of normal x: what the rounding of y to 16 bits does is about what rounding the gradient does.
TEST(InvertedActivation, OfSixteenBitsIsOffByAboutOneMoreRounding) {
  const Values x = random_values({100'000}, 5, 1);
  for (const Inverted& f : all)
    for (const auto& [dtype, share] :
         {std::pair{DType::BFloat16, 0.003}, {DType::Float16, 0.0008}}) {
      const There found = there_and_back(f, x, dtype);
      double error = 0, all_of_it = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double wanted = f.slope(found.x[i]);
        error += (found.dx[i] - wanted) * (found.dx[i] - wanted), all_of_it += wanted * wanted;
      }
      EXPECT_LT(std::sqrt(error / all_of_it), share) << f.name;
      EXPECT_GT(std::sqrt(error / all_of_it), share / 10) << f.name;  // values are rounded
    }
}

TEST(InvertedActivation, NotANumberAndInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Inverted& f : all) {
    const There found = there_and_back(f, {std::nan(""), infinity, -infinity, 40}, DType::Float32);
    EXPECT_TRUE(std::isnan(found.dx[0])) << f.name;
    EXPECT_EQ(found.dx[1], 1) << f.name;
    EXPECT_TRUE(std::isnan(found.dx[2])) << f.name;
    EXPECT_EQ(found.dx[3], 1) << f.name;
  }
}

TEST(InvertedActivation, GradientsThatAreNotThereAreZeroOrNotWritten) {
  Workspace workspace;
  TestArray y(Shape{3}, {1, 2, 3}), sides(Shape{1}, {7}, DType::UInt8), dx(Shape{3});
  inverted_gelu_backward(
      backward(OpKind::Opaque, {absent({3})}, {y.array(), sides.array()}, {Array{}}, {dx.array()}),
      workspace);
  EXPECT_EQ(dx.values(), (Values{0, 0, 0}));
  TestArray dy(Shape{3}, {1, 1, 1});
  inverted_gelu_backward(
      backward(OpKind::Opaque, {absent({3})}, {y.array(), sides.array()}, {dy.array()}, {Array{}}),
      workspace);
}

}  // namespace
}  // namespace tidemark::cpu::inverted_test
