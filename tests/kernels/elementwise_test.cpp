// Elementwise arithmetic: broadcasting, mixed dtypes, reduced gradients.
#include "kernels/elementwise/elementwise.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::elementwise_test {
namespace {

// Index of the element of `from` that stands for element i of `to`, aligned at the end.
std::size_t source_of(std::size_t i, const Shape& to, const Shape& from) {
  std::size_t result = 0, stride = 1;
  for (std::size_t k = 0; k < to.rank(); ++k) {
    const auto extent = static_cast<std::size_t>(to.back(k));
    if (k < from.rank()) {
      const auto own = static_cast<std::size_t>(from.back(k));
      if (own != 1) result += i % extent * stride;
      stride *= own;
    }
    i /= extent;
  }
  return result;
}

struct Pair {
  Shape a, b, y;
};
const std::array pairs = {Pair{{1}, {1}, {1}},
                          Pair{{1023}, {1023}, {1023}},
                          Pair{{2, 3, 33}, {2, 3, 33}, {2, 3, 33}},
                          Pair{{4, 5, 31}, {1, 5, 31}, {4, 5, 31}},
                          Pair{{4, 5, 31}, {31}, {4, 5, 31}},
                          Pair{{4, 5, 31}, {4, 1, 1}, {4, 5, 31}},
                          Pair{{4, 1, 31}, {1, 5, 1}, {4, 5, 31}},
                          Pair{{2, 3, 4, 5}, {2, 1, 1, 5}, {2, 3, 4, 5}},
                          Pair{{2, 3, 2, 3, 5, 7}, {1, 3, 1, 3, 1, 7}, {2, 3, 2, 3, 5, 7}}};

Values combined(const Pair& pair, const Values& a, const Values& b, bool multiplies) {
  Values y(static_cast<std::size_t>(numel(pair.y)));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double left = a[source_of(i, pair.y, pair.a)], right = b[source_of(i, pair.y, pair.b)];
    y[i] = multiplies ? left * right : left + right;
  }
  return y;
}

// Both functions are linear in each operand: every element of y adds its dy, times the other
// operand's element, to the one that it came from. Finite differences would take quadratic time.
Values gradient(const Pair& pair, const Shape& own, const Values& dy, const Shape& other,
                const Values& other_values, bool multiplies) {
  Values sums(static_cast<std::size_t>(numel(own)));
  for (std::size_t i = 0; i < dy.size(); ++i)
    sums[source_of(i, pair.y, own)] +=
        multiplies ? dy[i] * other_values[source_of(i, pair.y, other)] : dy[i];
  return sums;
}

void check_pair(const Pair& pair, bool multiplies, DType a_type, DType b_type, Lie lie) {
  Workspace workspace;
  const DType out = a_type == b_type ? a_type : DType::Float32;
  TestArray a(pair.a, random_values(pair.a, 1), a_type, lie),
      b(pair.b, random_values(pair.b, 2), b_type, lie), y(pair.y, out, lie);
  const OpKind kind = multiplies ? OpKind::Mul : OpKind::Add;
  (multiplies ? mul_forward : add_forward)(forward(kind, {a.array(), b.array()}, {y.array()}),
                                           workspace);
  const Values wanted = combined(pair, a.values(), b.values(), multiplies);
  ASSERT_LE(max_error(y.values(), wanted), epsilon_of(out) + 1e-7);
  ASSERT_TRUE(y.is_intact());

  TestArray dy(pair.y, random_values(pair.y, 3), out, lie), da(pair.a, a_type, lie),
      db(pair.b, b_type, lie);
  const Array left = multiplies ? a.array() : absent(pair.a, a_type);
  const Array right = multiplies ? b.array() : absent(pair.b, b_type);
  (multiplies ? mul_backward : add_backward)(
      backward(kind, {left, right}, {absent(pair.y)}, {dy.array()}, {da.array(), db.array()}),
      workspace);
  // fp32 sums of at most 155 products of about 0.64, each rounded by at most 2^-24.
  constexpr double rounding = 155 * 0.64 * 0x1p-24;
  const Values wanted_da = gradient(pair, pair.a, dy.values(), pair.b, b.values(), multiplies);
  const Values wanted_db = gradient(pair, pair.b, dy.values(), pair.a, a.values(), multiplies);
  ASSERT_LE(max_error(da.values(), wanted_da), epsilon_of(a_type) + rounding);
  ASSERT_LE(max_error(db.values(), wanted_db), epsilon_of(b_type) + rounding);
  ASSERT_TRUE(da.is_intact() && db.is_intact());
}

TEST(Elementwise, AddAndMulBroadcastAndReduceTheirGradients) {
  for (const Pair& pair : pairs)
    for (const bool multiplies : {false, true})
      for (const DType a : data_dtypes)
        for (const DType b : data_dtypes)
          for (const Lie lie : lies) check_pair(pair, multiplies, a, b, lie);
}

// 2^20 terms: a plain fp32 sum of 1 + 2^-12 loses several digits, a compensated one none.
TEST(Elementwise, LongSumsKeepTheirDigits) {
  Workspace workspace;
  const Shape shape{1 << 18, 4};
  TestArray dy(shape), da(Shape{4}), db(Shape{1, 1});
  const Array a = dy.array();
  std::fill_n(elements<float>(a), numel(shape), 1.000244140625f);
  add_backward(backward(OpKind::Add, {absent({4}), absent({1, 1})}, {absent(shape)}, {dy.array()},
                        {da.array(), db.array()}),
               workspace);
  EXPECT_LE(max_error(da.values(), Values(4, 1.000244140625 * (1 << 18))), 0x1p-24);
  EXPECT_LE(max_error(db.values(), {1.000244140625 * (1 << 20)}), 0x1p-22);
}

// Long rows are summed piece by piece: the same numbers in the same order, so the same bits.
TEST(Elementwise, SumsOverTheBatchHaveTheSameBitsWithAndWithoutGaps) {
  Workspace workspace;
  const Shape shape{7, 3, 1023};
  for (const Shape& of_sums : {Shape{3, 1023}, Shape{1, 3, 1023}, Shape{1, 1, 1023}})
    for (const DType dtype : data_dtypes) {
      const Values values = random_values(shape, 1, 1, dtype);
      const auto sums = [&](Lie lie) {
        TestArray dy(shape, values, dtype, lie), da(of_sums);
        add_backward(
            backward(OpKind::Add, {absent(of_sums)}, {absent(shape)}, {dy.array()}, {da.array()}),
            workspace);
        return da.values();
      };
      Values wanted(static_cast<std::size_t>(numel(of_sums)));
      for (std::size_t i = 0; i < values.size(); ++i) wanted[i % wanted.size()] += values[i];
      EXPECT_LE(max_error(sums(Lie::Dense), wanted), 1e-6);
      EXPECT_EQ(sums(Lie::Dense), sums(Lie::Padded));
    }
}

TEST(Elementwise, InfiniteSumsStayInfinite) {
  Workspace workspace;
  const double inf = std::numeric_limits<double>::infinity();
  TestArray dy(Shape{3, 3}, {inf, NAN, 3e38, 1, 1, 3e38, 1, 1, 1}), da(Shape{3});
  add_backward(backward(OpKind::Add, {absent({3})}, {absent({3, 3})}, {dy.array()}, {da.array()}),
               workspace);
  EXPECT_EQ(max_error(da.values(), {inf, NAN, inf}), 0);
}

TEST(Elementwise, ScaleMultipliesAndKeepsItsFactor) {
  Workspace workspace;
  const Settings settings{.factor = 0.1};
  for (const DType dtype : data_dtypes) {
    TestArray x(Shape{33, 3}, random_values({33, 3}, 4), dtype, Lie::Padded),
        y(Shape{33, 3}, dtype), factor(Shape{}, DType::Float64);
    scale_forward(forward(OpKind::Scale, {x.array()}, {y.array(), factor.array()}, settings),
                  workspace);
    EXPECT_EQ(factor.values(), Values{0.1});
    Values wanted = x.values();
    for (double& value : wanted) value *= 0.1;
    EXPECT_LE(max_error(y.values(), wanted), epsilon_of(dtype) + 1e-7);
    TestArray dx(Shape{33, 3}, dtype, Lie::Reversed);
    scale_backward(backward(OpKind::Scale, {absent({33, 3})}, {absent({33, 3})}, {x.array()},
                            {dx.array()}, settings),
                   workspace);
    EXPECT_EQ(dx.values(), y.values());
  }
}

TEST(Elementwise, AverageOfSeveral) {
  Workspace workspace;
  for (const std::size_t count : {1u, 2u, 3u})
    for (const DType dtype : data_dtypes) {
      const Shape shape{3, 2, 31};
      std::vector<TestArray> inputs, gradients;
      std::vector<Array> in, d_in;
      Values wanted(static_cast<std::size_t>(numel(shape)));
      for (std::size_t k = 0; k < count; ++k) {
        inputs.emplace_back(shape, random_values(shape, static_cast<unsigned>(k)), dtype, lies[k]);
        gradients.emplace_back(shape, dtype, lies[k]);
        const Values values = inputs.back().values();
        for (std::size_t i = 0; i < wanted.size(); ++i)
          wanted[i] += values[i] / static_cast<double>(count);
      }
      for (std::size_t k = 0; k < count; ++k)
        in.push_back(inputs[k].array()), d_in.push_back(gradients[k].array());
      TestArray y(shape, dtype), dy(shape, random_values(shape, 9), dtype);
      average_forward(forward(OpKind::Average, in, {y.array()}), workspace);
      EXPECT_LE(max_error(y.values(), wanted), epsilon_of(dtype) + 1e-6);
      average_backward(backward(OpKind::Average, in, {y.array()}, {dy.array()}, d_in), workspace);
      Values each = dy.values();
      for (double& value : each) value /= static_cast<double>(count);
      for (TestArray& gradient : gradients)
        EXPECT_LE(max_error(gradient.values(), each), epsilon_of(dtype) + 1e-6);
    }
}

TEST(Elementwise, WhatIsNotZeroIsTrue) {
  Workspace workspace;
  for (const DType dtype : data_dtypes) {
    TestArray x(Shape{6}, {0, 1, 0.25, -3, -0.0, 30000}, dtype);
    TestArray mask(Shape{6}, DType::Bool), back(Shape{6}, dtype);
    cast_forward(forward(OpKind::Cast, {x.array()}, {mask.array()}), workspace);
    cast_forward(forward(OpKind::Cast, {mask.array()}, {back.array()}), workspace);
    EXPECT_EQ(back.values(), (Values{0, 1, 1, 1, 0, 1}));
  }
}

TEST(Elementwise, CastRoundsOnceAndGradientsGoBack) {
  Workspace workspace;
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType from : data_dtypes)
    for (const DType to : data_dtypes)
      for (const Lie lie : lies) {
        Values values = random_values({5, 33}, 6);
        values[0] = NAN, values[1] = inf, values[2] = -inf, values[3] = 1e6;
        TestArray x(Shape{5, 33}, values, from, lie), y(Shape{5, 33}, to),
            back(Shape{5, 33}, from, lie);
        cast_forward(forward(OpKind::Cast, {x.array()}, {y.array()}), workspace);
        const TestArray wanted(Shape{5, 33}, x.values(), to);
        EXPECT_EQ(max_error(y.values(), wanted.values(), 0), 0);
        cast_backward(backward(OpKind::Cast, {absent({5, 33})}, {absent({5, 33})}, {y.array()},
                               {back.array()}),
                      workspace);
        const TestArray again(Shape{5, 33}, y.values(), from);
        EXPECT_EQ(max_error(back.values(), again.values(), 0), 0);
      }
}

TEST(Elementwise, WithoutGradientOfTheOutputAllAreZero) {
  Workspace workspace;
  const std::array kernels = {add_backward, mul_backward, scale_backward, average_backward,
                              cast_backward};
  for (const Kernel kernel : kernels) {
    TestArray x(Shape{33}, random_values({33}, 1)), dx(Shape{33});
    kernel(backward(OpKind::Add, {x.array(), x.array()}, {absent({33})}, {absent({33})},
                    {dx.array(), absent({33})}),
           workspace);
    EXPECT_EQ(dx.values(), Values(33, 0));
  }
}

}  // namespace
}  // namespace tidemark::cpu::elementwise_test
