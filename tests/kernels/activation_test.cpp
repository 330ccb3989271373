// Activations against formulas in double and finite differences of those.
#include "kernels/activation/activation.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::activation_test {
namespace {

double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double tanh_gelu(double x) {
  const double u = std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}
double silu(double x) { return x / (1 + std::exp(-x)); }
double tanh_itself(double x) { return std::tanh(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu(double x) { return x <= 0 ? 0 : x; }

struct Activation {
  OpKind kind;
  bool tanh_approx;
  double (*f)(double);
  Kernel forward, backward;
  bool reads_output;  ///< the backward reads y instead of x
};
const std::array activations = {
    Activation{OpKind::Gelu, false, gelu, gelu_forward, gelu_backward, false},
    Activation{OpKind::Gelu, true, tanh_gelu, gelu_forward, gelu_backward, false},
    Activation{OpKind::Silu, false, silu, silu_forward, silu_backward, false},
    Activation{OpKind::Tanh, false, tanh_itself, tanh_forward, tanh_backward, true},
    Activation{OpKind::Sigmoid, false, sigmoid, sigmoid_forward, sigmoid_backward, true},
    Activation{OpKind::Relu, false, relu, relu_forward, relu_backward, true}};

Values each(double (*f)(double), const Values& x) {
  Values y;
  for (const double value : x) y.push_back(f(value));
  return y;
}

Settings settings_of(const Activation& a) { return {.tanh_approx = a.tanh_approx}; }

TEST(Activation, ForwardIsTheFormulaInAnyDtypeAndLayout) {
  Workspace workspace;
  for (const Activation& a : activations)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{2, 3, 1023}, Shape{0, 4}})
      for (const DType in : data_dtypes)
        for (const DType out : data_dtypes)
          for (const Lie lie : lies) {
            TestArray x(shape, random_values(shape, 3, 3), in, lie), y(shape, out, lie);
            a.forward(forward(a.kind, {x.array()}, {y.array()}, settings_of(a)), workspace);
            ASSERT_LE(max_error(y.values(), each(a.f, x.values()), 0.1), epsilon_of(out) + 1e-6)
                << to_string(a.kind);
            ASSERT_TRUE(y.is_intact());
          }
}

// Far out on the negative side the value is small, and still has its digits.
TEST(Activation, TailsKeepTheirRelativeAccuracy) {
  Workspace workspace;
  Values tail;
  for (double x = -9; x < -3; x += 0.013)
    tail.push_back(static_cast<double>(static_cast<float>(x)));
  const Shape shape{static_cast<std::int64_t>(tail.size())};
  TestArray x(shape, tail), y(shape);
  gelu_forward(forward(OpKind::Gelu, {x.array()}, {y.array()}), workspace);
  EXPECT_LE(max_error(y.values(), each(gelu, tail), 0), 1e-6);
}

TEST(Activation, BackwardIsTheDerivative) {
  Workspace workspace;
  for (const Activation& a : activations)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{5, 3, 33}, Shape{1023}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies) {
          TestArray x(shape, random_values(shape, 3, 2), dtype, lie), dx(shape, dtype, lie);
          TestArray y(shape, each(a.f, x.values()), dtype, Lie::Padded);
          TestArray dy(shape, random_values(shape, 5), dtype, Lie::Padded);
          const Array none = absent(shape, dtype);
          a.backward(backward(a.kind, {a.reads_output ? none : x.array()},
                              {a.reads_output ? y.array() : none}, {dy.array()}, {dx.array()},
                              settings_of(a)),
                     workspace);
          const Values wanted = numeric_row_gradient(
              [&](const Values& at) { return each(a.f, at); }, x.values(), dy.values(), 1);
          // What y's rounding loses near ±1 is lost to 1 − y², too.
          const double of_output = a.reads_output ? 4 * epsilon_of(dtype) : 0;
          // 1e-6 of |dy|, which reaches 4.
          ASSERT_LE(max_error(dx.values(), wanted), epsilon_of(dtype) + of_output + 4e-6)
              << to_string(a.kind);
          ASSERT_TRUE(dx.is_intact());
        }
}

TEST(Activation, NotANumberAndInfinityDoAsInPyTorch) {
  Workspace workspace;
  const double inf = std::numeric_limits<double>::infinity();
  const Values special = {NAN, inf, -inf, 0, -0.0, 1e30, -1e30};
  const std::array<Values, 6> wanted = {
      Values{NAN, inf, NAN, 0, 0, 1e30, 0}, Values{NAN, inf, NAN, 0, 0, 1e30, 0},
      Values{NAN, inf, NAN, 0, 0, 1e30, 0}, Values{NAN, 1, -1, 0, 0, 1, -1},
      Values{NAN, 1, 0, 0.5, 0.5, 1, 0},    Values{NAN, inf, 0, 0, 0, 1e30, 0}};
  for (std::size_t i = 0; i < activations.size(); ++i) {
    TestArray x(Shape{7}, special), y(Shape{7});
    activations[i].forward(
        forward(activations[i].kind, {x.array()}, {y.array()}, settings_of(activations[i])),
        workspace);
    EXPECT_LE(max_error(y.values(), wanted[i]), 1e-6) << i;
  }
}

TEST(Activation, WithoutGradientOfTheOutputItIsZeroAndUnwantedOnesAreLeftAlone) {
  Workspace workspace;
  for (const Activation& a : activations) {
    TestArray x(Shape{33}, random_values({33}, 1)), dx(Shape{33});
    a.backward(backward(a.kind, {x.array()}, {x.array()}, {absent({33})}, {dx.array()}), workspace);
    EXPECT_EQ(dx.values(), Values(33, 0));
    a.backward(backward(a.kind, {x.array()}, {x.array()}, {x.array()}, {absent({33})}), workspace);
  }
}

TEST(Activation, ComposedGeluStoresWhatAnEagerFrameworkStores) {
  Workspace workspace;
  const Shape shape{3, 33};
  const Settings settings{.tanh_approx = true};
  for (const DType dtype : data_dtypes) {
    TestArray x(shape, random_values(shape, 2, 2), dtype, Lie::Swapped), y(shape, dtype),
        t(shape, dtype), half(shape, DType::Float32), one_plus(shape, dtype);
    const std::vector<Array> outputs = {y.array(), t.array(), half.array(), one_plus.array()};
    gelu_composed_forward(forward(OpKind::GeluComposed, {x.array()}, outputs, settings), workspace);
    const double e = epsilon_of(dtype);
    EXPECT_LE(max_error(y.values(), each(tanh_gelu, x.values())), 3 * e + 1e-6);
    for (std::size_t i = 0; i < x.values().size(); ++i) {
      EXPECT_NEAR(half.values()[i], x.values()[i] / 2, 1e-7);
      EXPECT_NEAR(one_plus.values()[i], 1 + t.values()[i], 2 * e);
    }
    TestArray dy(shape, random_values(shape, 4), dtype), dx(shape, dtype);
    gelu_composed_backward(
        backward(OpKind::GeluComposed, {x.array()}, outputs, {dy.array()}, {dx.array()}, settings),
        workspace);
    const Values wanted = numeric_gradient([](const Values& at) { return each(tanh_gelu, at); },
                                           x.values(), dy.values());
    EXPECT_LE(max_error(dx.values(), wanted), 8 * e + 1e-6);
  }
}

struct StepCase {
  OpKind kind;
  double a[3], c[3];  ///< as published
  Kernel exact, forward, backward;
};
const std::array step_cases = {
    StepCase{OpKind::ReGelu2,
             {-0.04922261145617846, 1.0979632065417297, -0.048740595085551286},
             {-3.1858810036855245, -0.001178821281161997, 3.190832613414926},
             gelu_forward,
             regelu2_forward,
             regelu2_backward},
    StepCase{OpKind::ReSilu2,
             {-0.04060357190528599, 1.080925428529668, -0.040321856624382146},
             {-6.3050461001646445, -0.0008684942046214787, 6.325815242089708},
             silu_forward,
             resilu2_forward,
             resilu2_backward}};

int segment(const StepCase& step, double x) {
  int result = 0;
  for (const double c : step.c) result += x > static_cast<double>(static_cast<float>(c)) ? 1 : 0;
  return result;
}

TEST(StepActivation, ForwardIsTheExactOneToTheBitAndCodesAreSegments) {
  Workspace workspace;
  for (const StepCase& step : step_cases)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{3, 1023}, Shape{2, 5, 7}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies)
          for (const bool tanh_approx : {false, true}) {
            const Settings settings{.tanh_approx = tanh_approx};
            const std::int64_t bytes = (numel(shape) + 3) / 4;
            TestArray x(shape, random_values(shape, 8, 4), dtype, lie), y(shape, dtype, lie),
                exact(shape, dtype, Lie::Dense), codes(Shape{bytes}, DType::UInt8);
            step.forward(forward(step.kind, {x.array()}, {y.array(), codes.array()}, settings),
                         workspace);
            step.exact(forward(OpKind::Gelu, {x.array()}, {exact.array()}, settings), workspace);
            ASSERT_EQ(y.values(), exact.values());
            ASSERT_TRUE(codes.is_intact());
            const Values numbers = x.values(), packed = codes.values();
            for (std::size_t i = 0; i < packed.size() * 4; ++i) {
              const int code = static_cast<int>(packed[i / 4]) >> (2 * (i % 4)) & 3;
              ASSERT_EQ(code, i < numbers.size() ? segment(step, numbers[i]) : 0) << i;
            }
          }
}

TEST(StepActivation, BackwardMultipliesByTheSlopeOfTheSegment) {
  Workspace workspace;
  for (const StepCase& step : step_cases)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{3, 1023}, Shape{2, 5, 7}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies) {
          const Values x = random_values(shape, 9, 4);
          Values packed(static_cast<std::size_t>((numel(shape) + 3) / 4)), wanted;
          TestArray dy(shape, random_values(shape, 10), dtype, lie), dx(shape, dtype, Lie::Padded);
          const Values given = dy.values();
          for (std::size_t i = 0; i < x.size(); ++i) {
            const int code = segment(step, x[i]);
            packed[i / 4] += code << (2 * (i % 4));
            double slope = 0;
            for (int k = 0; k < code; ++k) slope += step.a[k];
            wanted.push_back(slope * given[i]);
          }
          TestArray codes(Shape{static_cast<std::int64_t>(packed.size())}, packed, DType::UInt8);
          step.backward(backward(step.kind, {absent(shape)}, {absent(shape), codes.array()},
                                 {dy.array()}, {dx.array()}),
                        workspace);
          ASSERT_LE(max_error(dx.values(), wanted), epsilon_of(dtype) + 1e-6);
          ASSERT_TRUE(dx.is_intact());
        }
}

TEST(StepActivation, BreakPointsAndNaNBelongToTheLowerSegment) {
  Workspace workspace;
  for (const StepCase& step : step_cases) {
    const auto c = [&](int i) { return static_cast<double>(static_cast<float>(step.c[i])); };
    TestArray x(Shape{5}, {c(0), c(1), c(2), NAN, std::numeric_limits<double>::infinity()}),
        y(Shape{5}), codes(Shape{2}, DType::UInt8);
    step.forward(forward(step.kind, {x.array()}, {y.array(), codes.array()}), workspace);
    EXPECT_EQ(codes.values(), (Values{0 + 4 * 1 + 16 * 2 + 64 * 0, 3}));
    EXPECT_TRUE(std::isnan(y.values()[3]));
  }
}

}  // namespace
}  // namespace tidemark::cpu::activation_test
