// Zeroing and sums of elements, products and rows touch what they should and stay precise.
#include "kernels/cpu/sums.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::sums_test {
namespace {

TEST(Sums, ZeroesEveryElementAndNothingElse) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies)
      for (const Shape& shape : {Shape{}, Shape{1023}, Shape{3, 31, 33}}) {
        TestArray x(shape, dtype, lie);
        set_zero(x.array());
        EXPECT_EQ(x.values(), Values(static_cast<std::size_t>(numel(shape))));
        EXPECT_TRUE(x.is_intact());
      }
  set_zero(absent({3}));  // nothing to write to
}

TEST(Sums, FindsRowsByNumberAndStartsAgain) {
  for (const Lie lie : lies) {
    const Shape shape{2, 3, 4};
    TestArray x(shape, random_values(shape, 1), DType::Float32, lie);
    const Values values = x.values();
    for (std::size_t i = 0; i < 12; ++i) {
      std::array<float, 4> row;
      gather(nth_row(x.array(), static_cast<std::int64_t>(i)), 4, row.data());
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_EQ(static_cast<double>(row[k]), values[i % 6 * 4 + k]);
    }
  }
}

TEST(Sums, OfNumbersAndProducts) {
  for (const std::int64_t n : {0, 1, 15, 16, 31, 33, 1023}) {
    std::vector<float> a, b;
    double sum_in_double = 0, dot_in_double = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      a.push_back(1 / static_cast<float>(i + 1));
      b.push_back(static_cast<float>(i % 7) - 3);
      sum_in_double += static_cast<double>(a.back());
      dot_in_double += static_cast<double>(a.back()) * static_cast<double>(b.back());
    }
    EXPECT_NEAR(static_cast<double>(sum(a.data(), n)), sum_in_double, 1e-6 * (1 + sum_in_double));
    EXPECT_NEAR(static_cast<double>(dot(a.data(), b.data(), n)), dot_in_double, 1e-5);
    const std::vector<float> before = b;
    add_to(b.data(), a.data(), n, -2);
    for (std::size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], before[i] - 2 * a[i]);
  }
}

TEST(Sums, OfRowsOfAnyArray) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      const Shape shape{5, 33, 31};
      Workspace workspace;
      TestArray x(shape, random_values(shape, 1), dtype, lie), sums({31}, dtype);
      sum_rows(x.array(), sums.array(), workspace);
      Values wanted(31);
      const Values values = x.values();
      for (std::size_t i = 0; i < values.size(); ++i) wanted[i % 31] += values[i];
      EXPECT_LE(max_error(sums.values(), wanted), epsilon_of(dtype) + 1e-5);
    }
}

// 2^24 + 64 ones one by one in fp32 would stop growing at 2^24; in pieces of 64 they do not.
TEST(Sums, OfManyRowsStayPrecise) {
  Workspace workspace;
  TestArray one({1}, {1}), sums({1});
  Array many = one.array();
  many.shape = {(1 << 24) + 64, 1}, many.strides = {0, 1};
  sum_rows(many, sums.array(), workspace);
  EXPECT_EQ(sums.values(), Values{(1 << 24) + 64});
}

}  // namespace
}  // namespace tidemark::cpu::sums_test
