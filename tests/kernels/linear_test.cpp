// A linear and its gradients match their formulas in double; unwanted gradients are not written.
#include "kernels/linear/linear.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::linear_test {
namespace {

struct Sizes {
  std::int64_t batch, tokens, in, out;
};

Shape input_shape(Sizes s) { return {s.batch, s.tokens, s.in}; }
Shape output_shape(Sizes s) { return {s.batch, s.tokens, s.out}; }

/// y = x · Wᵀ + b, by its definition. A template of indices keeps the loops readable.
Values linear(const Values& x, const Values& weight, const Values& bias, Sizes s) {
  Values y;
  for (std::int64_t row = 0; row < s.batch * s.tokens; ++row)
    for (std::int64_t o = 0; o < s.out; ++o) {
      double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < s.in; ++i)
        sum += x[static_cast<std::size_t>(row * s.in + i)] *
               weight[static_cast<std::size_t>(o * s.in + i)];
      y.push_back(sum);
    }
  return y;
}

struct Gradients {
  Values x, weight, bias;
};

Gradients linear_gradients(const Values& x, const Values& weight, const Values& dy, Sizes s) {
  Gradients d{Values(x.size()), Values(weight.size()), Values(static_cast<std::size_t>(s.out))};
  for (std::int64_t row = 0; row < s.batch * s.tokens; ++row)
    for (std::int64_t o = 0; o < s.out; ++o) {
      const double error = dy[static_cast<std::size_t>(row * s.out + o)];
      d.bias[static_cast<std::size_t>(o)] += error;
      for (std::int64_t i = 0; i < s.in; ++i) {
        const auto at = static_cast<std::size_t>(row * s.in + i);
        const auto w = static_cast<std::size_t>(o * s.in + i);
        d.x[at] += error * weight[w];
        d.weight[w] += error * x[at];
      }
    }
  return d;
}

constexpr std::array sizes_to_try = {Sizes{1, 1, 1, 1}, Sizes{2, 31, 33, 7}, Sizes{3, 5, 1023, 33},
                                     Sizes{1, 33, 31, 1023}};

class LinearTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());
  cpu::Workspace workspace;

  double tolerance(std::int64_t terms) const {
    return epsilon_of(dtype) + 8 * std::sqrt(static_cast<double>(terms)) * 0x1p-24;
  }
};

TEST_P(LinearTest, ForwardMatchesDouble) {
  for (const Sizes s : sizes_to_try) {
    TestArray x(input_shape(s), random_values(input_shape(s), 1), dtype, lie);
    TestArray weight({s.out, s.in}, random_values({s.out, s.in}, 2), dtype);
    TestArray bias({s.out}, random_values({s.out}, 3), dtype), y(output_shape(s), dtype, lie);
    cpu::linear_forward(
        forward(OpKind::Linear, {x.array(), weight.array(), bias.array()}, {y.array()}), workspace);
    const double size = std::sqrt(static_cast<double>(s.in));
    EXPECT_LE(max_error(y.values(), linear(x.values(), weight.values(), bias.values(), s), size),
              tolerance(s.in));
    EXPECT_TRUE(y.is_intact());
    cpu::linear_forward(forward(OpKind::Linear, {x.array(), weight.array()}, {y.array()}),
                        workspace);
    EXPECT_LE(max_error(y.values(), linear(x.values(), weight.values(), {}, s), size),
              tolerance(s.in));
  }
}

TEST_P(LinearTest, BackwardMatchesDouble) {
  for (const Sizes s : sizes_to_try) {
    TestArray x(input_shape(s), random_values(input_shape(s), 1), dtype, lie);
    TestArray weight({s.out, s.in}, random_values({s.out, s.in}, 2), dtype);
    TestArray dy(output_shape(s), random_values(output_shape(s), 3), dtype, lie);
    TestArray dx(input_shape(s), dtype, lie), dw({s.out, s.in}, dtype), db({s.out}, dtype);
    cpu::linear_backward(
        backward(OpKind::Linear, {x.array(), weight.array(), absent({s.out}, dtype)},
                 {absent(output_shape(s), dtype)}, {dy.array()},
                 {dx.array(), dw.array(), db.array()}),
        workspace);
    const Gradients wanted = linear_gradients(x.values(), weight.values(), dy.values(), s);
    const std::int64_t rows = s.batch * s.tokens;
    const auto root = [](std::int64_t n) { return std::sqrt(static_cast<double>(n)); };
    EXPECT_LE(max_error(dx.values(), wanted.x, root(s.out)), tolerance(s.out));
    EXPECT_LE(max_error(dw.values(), wanted.weight, root(rows)), tolerance(rows));
    EXPECT_LE(max_error(db.values(), wanted.bias, root(rows)), tolerance(rows));
    EXPECT_TRUE(dx.is_intact() && dw.is_intact() && db.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

// Only what was saved for the wanted gradients is read.
TEST(Linear, WritesOnlyWantedGradients) {
  cpu::Workspace workspace;
  const Sizes s{1, 2, 3, 4};
  TestArray x(input_shape(s), random_values(input_shape(s), 1));
  TestArray weight({4, 3}, random_values({4, 3}, 2));
  TestArray dy(output_shape(s), random_values(output_shape(s), 3));
  const Gradients wanted = linear_gradients(x.values(), weight.values(), dy.values(), s);
  TestArray dx(input_shape(s)), dw({4, 3});
  const std::vector<Array> y = {absent(output_shape(s))};
  cpu::linear_backward(backward(OpKind::Linear, {absent(input_shape(s)), weight.array()}, y,
                                {dy.array()}, {dx.array(), absent()}),
                       workspace);
  EXPECT_LE(max_error(dx.values(), wanted.x), 1e-6);
  cpu::linear_backward(backward(OpKind::Linear, {x.array(), absent({4, 3})}, y, {dy.array()},
                                {absent(), dw.array()}),
                       workspace);
  EXPECT_LE(max_error(dw.values(), wanted.weight), 1e-6);
}

TEST(Linear, AnAbsentErrorIsZero) {
  cpu::Workspace workspace;
  TestArray x({2, 3}, Values(6, 1.0)), weight({4, 3}, Values(12, 1.0));
  TestArray dx({2, 3}), dw({4, 3}), db({4});
  cpu::linear_backward(
      backward(OpKind::Linear, {x.array(), weight.array(), absent({4})}, {absent({2, 4})},
               {absent({2, 4})}, {dx.array(), dw.array(), db.array()}),
      workspace);
  EXPECT_EQ(dx.values(), Values(6));
  EXPECT_EQ(dw.values(), Values(12));
  EXPECT_EQ(db.values(), Values(4));
}

// One value for all rows, as the gradient of a mean has it.
TEST(Linear, ReadsRepeatedRows) {
  cpu::Workspace workspace;
  const Sizes s{2, 5, 3, 4};
  TestArray x(input_shape(s), random_values(input_shape(s), 1));
  TestArray weight({4, 3}, random_values({4, 3}, 2)), one({4}, random_values({4}, 3));
  Array dy = one.array();
  dy.shape = output_shape(s), dy.strides = {0, 0, 1};
  Values repeated;
  for (int i = 0; i < 10; ++i)
    for (const double value : one.values()) repeated.push_back(value);
  TestArray dx(input_shape(s)), dw({4, 3}), db({4});
  cpu::linear_backward(
      backward(OpKind::Linear, {x.array(), weight.array(), absent({4})}, {absent(output_shape(s))},
               {dy}, {dx.array(), dw.array(), db.array()}),
      workspace);
  const Gradients wanted = linear_gradients(x.values(), weight.values(), repeated, s);
  EXPECT_LE(max_error(dx.values(), wanted.x), 1e-6);
  EXPECT_LE(max_error(dw.values(), wanted.weight), 2e-6);
  EXPECT_LE(max_error(db.values(), wanted.bias), 2e-6);
}

// The formulas above are checked themselves.
TEST(Linear, FormulasMatchFiniteDifferences) {
  const Sizes s{1, 3, 4, 2};
  const Values x = random_values(input_shape(s), 1), weight = random_values({2, 4}, 2);
  const Values bias = random_values({2}, 3), dy = random_values(output_shape(s), 4);
  const Gradients d = linear_gradients(x, weight, dy, s);
  const auto of_x = [&](const Values& v) { return linear(v, weight, bias, s); };
  const auto of_weight = [&](const Values& v) { return linear(x, v, bias, s); };
  const auto of_bias = [&](const Values& v) { return linear(x, weight, v, s); };
  EXPECT_LE(max_error(d.x, numeric_gradient(of_x, x, dy)), 1e-8);
  EXPECT_LE(max_error(d.weight, numeric_gradient(of_weight, weight, dy)), 1e-8);
  EXPECT_LE(max_error(d.bias, numeric_gradient(of_bias, bias, dy)), 1e-8);
}

}  // namespace
}  // namespace tidemark::linear_test
