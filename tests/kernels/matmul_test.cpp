// Batched products with broadcast or repeated batches, and their gradients, match sums in double.
#include "kernels/linear/linear.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::matmul_test {
namespace {

struct Product {
  Shape a, b, y;
};

/// Row-major number of the operand's element for (batch index of y, row, column).
std::size_t place(const Shape& operand, const Shape& y, std::span<const std::int64_t> batch,
                  std::int64_t row, std::int64_t column) {
  const std::size_t missing = y.rank() - operand.rank();
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis + 2 < operand.rank(); ++axis)
    at = at * operand[axis] + batch[axis + missing] % operand[axis];
  return static_cast<std::size_t>((at * operand.back(1) + row) * operand.back() + column);
}

/// Calls body(place in y, place in a, place in b) for each term of the product.
template <typename Body>
void for_terms(const Product& p, Body&& body) {
  const std::int64_t matrix = p.y.back() * p.y.back(1);
  for (std::int64_t n = 0; n < numel(p.y); ++n) {
    std::array<std::int64_t, Shape::max_rank> batch{};
    std::int64_t rest = n / matrix;
    for (std::size_t axis = p.y.rank() - 2; axis-- > 0; rest /= p.y[axis])
      batch[axis] = rest % p.y[axis];
    const std::int64_t row = n % matrix / p.y.back(), column = n % p.y.back();
    for (std::int64_t k = 0; k < p.a.back(); ++k)
      body(static_cast<std::size_t>(n), place(p.a, p.y, batch, row, k),
           place(p.b, p.y, batch, k, column));
  }
}

Values multiply(const Values& a, const Values& b, const Product& p) {
  Values y(static_cast<std::size_t>(numel(p.y)));
  for_terms(p, [&](std::size_t n, std::size_t i, std::size_t j) { y[n] += a[i] * b[j]; });
  return y;
}

const std::vector<Product>& products() {
  static const std::vector<Product> all = {
      {{1, 1}, {1, 1}, {1, 1}},
      {{31, 33}, {33, 7}, {31, 7}},
      {{2, 1, 1023}, {2, 1023, 3}, {2, 1, 3}},
      {{2, 3, 5, 7}, {2, 3, 7, 31}, {2, 3, 5, 31}},
      {{2, 3, 5, 7}, {7, 4}, {2, 3, 5, 4}},        // a missing axis
      {{2, 3, 5, 7}, {1, 3, 7, 4}, {2, 3, 5, 4}},  // an axis of one element
      {{1, 2, 3, 5}, {4, 1, 5, 6}, {4, 2, 3, 6}},  // on both sides
      {{6, 2, 3, 5}, {3, 1, 5, 2}, {6, 2, 3, 2}},  // three windows, twice
  };
  return all;
}

class MatMulTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());
  cpu::Workspace workspace;
};

TEST_P(MatMulTest, MatchesDouble) {
  for (const Product& p : products()) {
    TestArray a(p.a, random_values(p.a, 1), dtype, lie), b(p.b, random_values(p.b, 2), dtype, lie);
    TestArray y(p.y, dtype, lie);
    cpu::matmul_forward(forward(OpKind::MatMul, {a.array(), b.array()}, {y.array()}), workspace);
    const double size = std::sqrt(static_cast<double>(p.a.back()));
    EXPECT_LE(max_error(y.values(), multiply(a.values(), b.values(), p), size),
              epsilon_of(dtype) + 8 * size * 0x1p-24)
        << to_text(p.a) << to_text(p.b);
    EXPECT_TRUE(y.is_intact());
  }
}

TEST_P(MatMulTest, BackwardMatchesDouble) {
  for (const Product& p : products()) {
    TestArray a(p.a, random_values(p.a, 1), dtype, lie), b(p.b, random_values(p.b, 2), dtype, lie);
    TestArray dy(p.y, random_values(p.y, 3), dtype, lie);
    TestArray da(p.a, dtype, lie), db(p.b, dtype, lie);
    cpu::matmul_backward(backward(OpKind::MatMul, {a.array(), b.array()}, {absent(p.y, dtype)},
                                  {dy.array()}, {da.array(), db.array()}),
                         workspace);
    const Values va = a.values(), vb = b.values(), error = dy.values();
    Values wanted_a(va.size()), wanted_b(vb.size());
    for_terms(p, [&](std::size_t n, std::size_t i, std::size_t j) {
      wanted_a[i] += error[n] * vb[j];
      wanted_b[j] += error[n] * va[i];
    });
    const double terms_a = static_cast<double>(numel(p.y) * p.a.back() / numel(p.a));
    const double terms_b = static_cast<double>(numel(p.y) * p.a.back() / numel(p.b));
    EXPECT_LE(max_error(da.values(), wanted_a, std::sqrt(terms_a)),
              epsilon_of(dtype) + 8 * std::sqrt(terms_a) * 0x1p-24)
        << to_text(p.a) << to_text(p.b);
    EXPECT_LE(max_error(db.values(), wanted_b, std::sqrt(terms_b)),
              epsilon_of(dtype) + 8 * std::sqrt(terms_b) * 0x1p-24)
        << to_text(p.a) << to_text(p.b);
    EXPECT_TRUE(da.is_intact() && db.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, MatMulTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

TEST(MatMul, GradientsMatchFiniteDifferences) {
  const Product p{{2, 1, 2, 3}, {3, 3, 2}, {2, 3, 2, 2}};
  const Values a = random_values(p.a, 1), b = random_values(p.b, 2), dy = random_values(p.y, 3);
  cpu::Workspace workspace;
  TestArray xa(p.a, a), xb(p.b, b), error(p.y, dy), da(p.a), db(p.b);
  cpu::matmul_backward(backward(OpKind::MatMul, {xa.array(), xb.array()}, {absent(p.y)},
                                {error.array()}, {da.array(), db.array()}),
                       workspace);
  const auto of_a = [&](const Values& v) { return multiply(v, xb.values(), p); };
  const auto of_b = [&](const Values& v) { return multiply(xa.values(), v, p); };
  EXPECT_LE(max_error(da.values(), numeric_gradient(of_a, a, dy)), 1e-6);
  EXPECT_LE(max_error(db.values(), numeric_gradient(of_b, b, dy)), 1e-6);
}

TEST(MatMul, WritesOnlyWantedGradients) {
  cpu::Workspace workspace;
  TestArray a({2, 3}, Values(6, 1.0)), b({3, 2}, Values(6, 2.0)), dy({2, 2}, Values(4, 1.0));
  TestArray da({2, 3}), db({3, 2});
  cpu::matmul_backward(backward(OpKind::MatMul, {absent({2, 3}), b.array()}, {absent({2, 2})},
                                {dy.array()}, {da.array(), absent()}),
                       workspace);
  EXPECT_EQ(da.values(), Values(6, 4.0));
  cpu::matmul_backward(backward(OpKind::MatMul, {a.array(), absent({3, 2})}, {absent({2, 2})},
                                {dy.array()}, {absent(), db.array()}),
                       workspace);
  EXPECT_EQ(db.values(), Values(6, 2.0));
  cpu::matmul_backward(backward(OpKind::MatMul, {a.array(), b.array()}, {absent({2, 2})},
                                {absent({2, 2})}, {da.array(), db.array()}),
                       workspace);
  EXPECT_EQ(da.values(), Values(6));
  EXPECT_EQ(db.values(), Values(6));
}

TEST(MatMul, PropagatesNan) {
  cpu::Workspace workspace;
  TestArray a({1, 2}, {std::nan(""), 1}), b({2, 2}, {0, 0, 1, 1}), y({1, 2});
  cpu::matmul_forward(forward(OpKind::MatMul, {a.array(), b.array()}, {y.array()}), workspace);
  EXPECT_TRUE(std::isnan(y.values()[0]) && std::isnan(y.values()[1]));
}

}  // namespace
}  // namespace tidemark::matmul_test
