// Matrix products against sums in double, for every way in which operands can lie.
#include "kernels/cpu/gemm.h"

#include <dlfcn.h>

#include <thread>

#include "kernels/cpu/blas.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::gemm_test {
namespace {

struct Sizes {
  std::int64_t m, n, k;
};

/// Rows contiguous, columns contiguous, neither.
enum class Order : std::uint8_t { Rows, Columns, Neither };
constexpr std::array orders = {Order::Rows, Order::Columns, Order::Neither};

TestArray matrix(std::int64_t rows, std::int64_t columns, DType dtype, Order order) {
  const std::int64_t gap = order == Order::Neither ? 2 : 1;
  const std::array<std::int64_t, 2> strides =
      order == Order::Columns ? std::array<std::int64_t, 2>{1, rows + 3}
                              : std::array<std::int64_t, 2>{gap * (columns + 1), gap};
  return TestArray(Layout{{rows, columns}, {strides[0], strides[1]}, 1}, dtype);
}

Values product(const Values& a, const Values& b, Sizes s) {
  Values c(static_cast<std::size_t>(s.m * s.n));
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t j = 0; j < s.n; ++j)
        c[static_cast<std::size_t>(i * s.n + j)] +=
            a[static_cast<std::size_t>(i * s.k + k)] * b[static_cast<std::size_t>(k * s.n + j)];
  return c;
}

Matrix matrix_of(TestArray& array) { return last_axes(array.array(), array.array().data); }

/// Rounding of the result, and of fp32 sums of k products of normal numbers.
double tolerance(DType dtype, std::int64_t k) {
  return epsilon_of(dtype) + 4 * std::sqrt(static_cast<double>(k)) * 0x1p-24;
}

struct Case {
  Sizes sizes;
  std::array<DType, 3> dtypes;
  std::array<Order, 3> orders;
};

/// Of alpha · a · b + bias against the same in double.
double error_of(const Case& c, const GemmOptions& options, bool biased) {
  const auto [m, n, k] = c.sizes;
  Workspace workspace;
  TestArray a = matrix(m, k, c.dtypes[0], c.orders[0]), b = matrix(k, n, c.dtypes[1], c.orders[1]);
  TestArray y = matrix(m, n, c.dtypes[2], c.orders[2]);
  const std::int64_t width = options.bias_by_row ? m : n;
  TestArray bias({width}, random_values({width}, 3), c.dtypes[1]);
  a.set(random_values({m, k}, 1)), b.set(random_values({k, n}, 2));
  const Values before = random_values({m, n}, 4, 1, c.dtypes[2]);
  if (options.adds) y.set(before);
  Values wanted = product(a.values(), b.values(), c.sizes);
  const Values added = bias.values();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t place = static_cast<std::size_t>(n);
    wanted[i] = static_cast<double>(options.alpha) * wanted[i] + (options.adds ? before[i] : 0) +
                (biased ? added[options.bias_by_row ? i / place : i % place] : 0);
  }
  GemmOptions given = options;
  if (biased) given.bias = {bias.array().data, c.dtypes[1], 1};
  gemm(matrix_of(a), matrix_of(b), matrix_of(y), given, workspace);
  EXPECT_TRUE(y.is_intact());
  EXPECT_LE(workspace.taken(), 8u << 20);
  return max_error(y.values(), wanted, std::sqrt(static_cast<double>(k)));
}

TEST(Gemm, MatchesDoubleForAwkwardSizes) {
  for (const std::int64_t m : {1, 31, 33})
    for (const std::int64_t n : {1, 31, 33, 1023})
      for (const std::int64_t k : {1, 31, 1023})
        for (const DType dtype : data_dtypes) {
          const Case c{{m, n, k}, {dtype, dtype, dtype}, {}};
          EXPECT_LE(error_of(c, {}, false), tolerance(dtype, k)) << m << " " << n << " " << k;
        }
}

TEST(Gemm, MatchesDoubleHoweverOperandsLie) {
  for (const Order a : orders)
    for (const Order b : orders)
      for (const Order y : orders)
        for (const DType dtype : data_dtypes) {
          const Case c{{17, 23, 40}, {dtype, dtype, dtype}, {a, b, y}};
          EXPECT_LE(error_of(c, {.alpha = 0.5f}, true), tolerance(dtype, 40));
          EXPECT_LE(error_of(c, {.bias_by_row = true}, true), tolerance(dtype, 40));
          EXPECT_LE(error_of(c, {.alpha = -2, .adds = true}, false), 2 * tolerance(dtype, 40));
        }
}

TEST(Gemm, TakesMixedDtypes) {
  for (const DType a : data_dtypes)
    for (const DType b : data_dtypes)
      for (const DType y : data_dtypes)
        EXPECT_LE(error_of({{9, 33, 31}, {a, b, y}, {}}, {}, true), tolerance(y, 31));
}

// Longer than a block in each direction, so that the blocks' borders are crossed.
TEST(Gemm, JoinsBlocks) {
  for (const Sizes sizes : {Sizes{520, 7, 1030}, Sizes{5, 1030, 1100}, Sizes{1100, 33, 9}})
    for (const Order y : orders) {
      const Case c{sizes, {DType::BFloat16, DType::Float16, DType::BFloat16}, {y, y, y}};
      EXPECT_LE(error_of(c, {}, true), tolerance(DType::BFloat16, sizes.k));
    }
}

TEST(Gemm, SumsProductsAndRoundsOnce) {
  // Behind 1, bf16 continues with 1 + 2^-7: rounded after each product, the sum would stay 1.
  Workspace workspace;
  TestArray a({1, 1}, {1}, DType::BFloat16), tiny({1, 1}, {0x1p-9}, DType::BFloat16);
  TestArray c({1, 1}, DType::BFloat16);
  gemm_sum(
      [&](const Factors& take) {
        take(matrix_of(a), matrix_of(a));
        for (int i = 0; i < 8; ++i) take(matrix_of(a), matrix_of(tiny));
      },
      matrix_of(c), {}, workspace);
  EXPECT_EQ(c.values(), Values{1 + 0x1p-6});
}

TEST(Gemm, AnEmptySumIsTheBias) {
  Workspace workspace;
  TestArray c({2, 3}), bias({3}, {1, 2, 3});
  gemm_sum([](const Factors&) {}, matrix_of(c), {.bias = {bias.array().data}}, workspace);
  EXPECT_EQ(c.values(), (Values{1, 2, 3, 1, 2, 3}));
  gemm_sum([](const Factors&) {}, matrix_of(c), {}, workspace);
  EXPECT_EQ(c.values(), Values(6));
}

TEST(Gemm, PropagatesNanAndInfinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : data_dtypes) {
    Workspace workspace;
    TestArray a({3, 2}, {std::nan(""), 1, infinity, 1, 0, 1}, dtype),
        b({2, 2}, {1, 0, 1, 1}, dtype);
    TestArray c({3, 2}, dtype);
    gemm(matrix_of(a), matrix_of(b), matrix_of(c), {}, workspace);
    const Values got = c.values();
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]));  // NaN · 0 too
    EXPECT_EQ(got[2], infinity);
    EXPECT_TRUE(std::isnan(got[3]));  // ∞ · 0
    EXPECT_EQ(got[4], 1);
    EXPECT_EQ(got[5], 1);
  }
}

// A stream's numbers must not depend on what the others do meanwhile.
TEST(Gemm, GivesTheSameBitsBesideAnotherThread) {
  const Shape shape{200, 200};
  const auto run = [&] {
    Workspace workspace;
    TestArray a(shape, random_values(shape, 1)), b(shape, random_values(shape, 2)), c(shape);
    gemm(matrix_of(a), matrix_of(b), matrix_of(c), {}, workspace);
    return c.bytes();
  };
  const auto alone = run();
  std::array<bool, 2> equal{};
  const auto repeat = [&](bool& all_equal) {
    all_equal = true;
    for (int i = 0; i < 50; ++i) all_equal = all_equal && run() == alone;
  };
  std::thread other(repeat, std::ref(equal[0]));
  repeat(equal[1]);
  other.join();
  EXPECT_TRUE(equal[0] && equal[1]);
}

#if defined(__x86_64__)
// OpenBLAS's own choice is the slowest of all on processors that are younger than its release.
TEST(Gemm, RunsTheKernelsOfThisProcessor) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this processor has no AVX2";
  sgemm();
  void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto core_name =
      reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_corename"));
  ASSERT_NE(core_name, nullptr);
  EXPECT_STRNE(core_name(), "Prescott");
  dlclose(library);
}
#endif

}  // namespace
}  // namespace tidemark::cpu::gemm_test
