// Softmax and log-softmax against formulas in double and finite differences of those.
#include "kernels/softmax/softmax.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::softmax_test {
namespace {

const double inf = std::numeric_limits<double>::infinity();

Values exact(const Values& x, std::size_t n, bool is_log) {
  Values y;
  for (std::size_t row = 0; row < x.size(); row += n) {
    const double most = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(row),
                                          x.begin() + static_cast<std::ptrdiff_t>(row + n));
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += std::exp(x[row + i] - most);
    for (std::size_t i = 0; i < n; ++i)
      y.push_back(is_log ? x[row + i] - most - std::log(total)
                         : std::exp(x[row + i] - most) / total);
  }
  return y;
}

Kernel forward_of(bool is_log) { return is_log ? log_softmax_forward : softmax_forward; }
Kernel backward_of(bool is_log) { return is_log ? log_softmax_backward : softmax_backward; }
OpKind kind_of(bool is_log) { return is_log ? OpKind::LogSoftmax : OpKind::Softmax; }

TEST(Softmax, ForwardAndBackwardInAnyDtypeAndLayout) {
  Workspace workspace;
  for (const bool is_log : {false, true})
    for (const Shape& shape :
         {Shape{1}, Shape{2, 31}, Shape{2, 3, 2, 33}, Shape{3, 1023}, Shape{2, 5000}})
      for (const DType in : data_dtypes)
        for (const DType out : {DType::Float32, in})
          for (const Lie lie : lies) {
            const auto n = static_cast<std::size_t>(shape.back());
            TestArray x(shape, random_values(shape, 1, 4), in, lie), y(shape, out, lie);
            forward_of(is_log)(forward(kind_of(is_log), {x.array()}, {y.array()}), workspace);
            const Values wanted = exact(x.values(), n, is_log);
            ASSERT_LE(max_error(y.values(), wanted, is_log ? 10 : 1e-4),
                      epsilon_of(out) + 1e-6 + (out == DType::Float16 ? 2e-3 : 0));
            ASSERT_TRUE(y.is_intact());
            if (n > 100) continue;
            TestArray dy(shape, random_values(shape, 2), out, lie), dx(shape, in, lie);
            backward_of(is_log)(backward(kind_of(is_log), {absent(shape, in)}, {y.array()},
                                         {dy.array()}, {dx.array()}),
                                workspace);
            const Values gradient = numeric_row_gradient(
                [&](const Values& at) { return exact(at, n, is_log); }, x.values(), dy.values(), n);
            // y's rounding, times Σ|dy| of the row
            const double of_output = epsilon_of(out) * (is_log ? 100 : 4);
            ASSERT_LE(max_error(dx.values(), gradient), epsilon_of(in) + of_output + 1e-5);
            ASSERT_TRUE(dx.is_intact());
          }
}

TEST(Softmax, LargeNumbersNeitherOverflowNorVanish) {
  Workspace workspace;
  TestArray x(Shape{2, 3}, {1e30, 1e30, -1e30, 1000, 1001, 1002}), y(Shape{2, 3});
  softmax_forward(forward(OpKind::Softmax, {x.array()}, {y.array()}), workspace);
  EXPECT_LE(max_error(y.values(), exact(x.values(), 3, false), 1e-3), 1e-6);
  log_softmax_forward(forward(OpKind::LogSoftmax, {x.array()}, {y.array()}), workspace);
  EXPECT_LE(max_error(y.values(), exact(x.values(), 3, true)), 1e-6);
}

TEST(Softmax, MasksAndNotANumberDoAsInPyTorch) {
  Workspace workspace;
  const Values x = {0, -inf, 0, -inf, -inf, -inf, 0, NAN, 0, 0, inf, 0};
  TestArray in(Shape{4, 3}, x), y(Shape{4, 3});
  softmax_forward(forward(OpKind::Softmax, {in.array()}, {y.array()}), workspace);
  const Values spoilt(9, NAN);
  Values wanted = {0.5, 0, 0.5};
  wanted.insert(wanted.end(), spoilt.begin(), spoilt.end());
  EXPECT_LE(max_error(y.values(), wanted), 1e-6);
  log_softmax_forward(forward(OpKind::LogSoftmax, {in.array()}, {y.array()}), workspace);
  wanted[0] = wanted[2] = std::log(0.5), wanted[1] = -inf;
  EXPECT_LE(max_error(y.values(), wanted), 1e-6);
}

// More than one vector, so that the vector loop meets the NaN, too.
TEST(Softmax, NotANumberAnywhereInALongRowIsFound) {
  Workspace workspace;
  for (const std::size_t place : {0u, 17u, 99u}) {
    Values x = random_values({100}, 1);
    x[place] = NAN;
    TestArray in(Shape{100}, x), y(Shape{100});
    softmax_forward(forward(OpKind::Softmax, {in.array()}, {y.array()}), workspace);
    for (const double value : y.values()) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Softmax, WithoutGradientOfTheOutputItIsZero) {
  Workspace workspace;
  for (const bool is_log : {false, true}) {
    TestArray y(Shape{3, 3}, Values(9, 0.3)), dx(Shape{3, 3});
    backward_of(is_log)(
        backward(kind_of(is_log), {absent({3, 3})}, {y.array()}, {absent({3, 3})}, {dx.array()}),
        workspace);
    EXPECT_EQ(dx.values(), Values(9, 0));
    backward_of(is_log)(
        backward(kind_of(is_log), {absent({3, 3})}, {y.array()}, {y.array()}, {absent({3, 3})}),
        workspace);
  }
}

}  // namespace
}  // namespace tidemark::cpu::softmax_test
