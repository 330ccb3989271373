// Walks over arrays: each element once, whatever the strides; guards unharmed.
#include "kernels/cpu/rows.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::rows_test {
namespace {

struct Case {
  Shape shape;
  Lie from, to;
  DType from_dtype, to_dtype;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  const std::array shapes = {Shape{},
                             Shape{1},
                             Shape{1023},
                             Shape{33, 31},
                             Shape{2, 3, 65},
                             Shape{1, 4, 1, 7},
                             Shape{3, 1, 2},
                             Shape{2, 3, 1, 5, 2, 3},
                             Shape{2, longest_run + 76}};
  for (const Shape& shape : shapes)
    for (const Lie from : lies)
      for (const Lie to : lies)
        for (const DType a : data_dtypes)
          for (const DType b : data_dtypes) cases.push_back({shape, from, to, a, b});
  return cases;
}

// Copies by runs or rows and expects what single conversions give.
template <typename Walk>
void expect_copies(Walk walk) {
  for (const Case& c : all_cases()) {
    const Values values = random_values(c.shape, 7, 1, c.from_dtype);
    TestArray from(c.shape, values, c.from_dtype, c.from), to(c.shape, c.to_dtype, c.to);
    const Array x = from.array(), y = to.array();
    walk(x, y);
    const TestArray wanted(c.shape, values, c.to_dtype);
    ASSERT_EQ(to.values(), wanted.values()) << to_text(c.shape);
    ASSERT_TRUE(to.is_intact());
  }
}

TEST(Rows, RunsCoverEveryElementOnce) {
  for (const bool ordered : {false, true})
    expect_copies([&](const Array& x, const Array& y) {
      float scratch[longest_run];
      for_runs(
          y.shape, std::array{&y, &x},
          [&](const auto& runs, std::int64_t n) { write(runs[0], n, read(runs[1], n, scratch)); },
          ordered);
    });
}

TEST(Rows, RowsCoverEveryElementOnceInOrder) {
  expect_copies([](const Array& x, const Array& y) {
    std::vector<float> scratch(4096);
    std::int64_t next = 0;
    for_rows(std::array{&x, &y}, [&](const auto& rows, std::int64_t i) {
      EXPECT_EQ(i, next++);
      const std::int64_t n = row_length(x.shape);
      write(rows[1], n, read(rows[0], n, scratch.data()));
    });
    EXPECT_EQ(next, numel(x.shape) / row_length(x.shape));
  });
}

TEST(Rows, MissingAndSingleAxesRepeat) {
  TestArray out(Shape{2, 3, 4}), row(Shape{4}, {1, 2, 3, 4}), column(Shape{2, 1, 1}, {10, 20});
  const Array y = out.array(), a = row.array(), b = column.array();
  for_runs(std::array{&y, &a, &b}, [](const auto& runs, std::int64_t n) {
    float x[8], z[8], sum[8];
    const float *p = read(runs[1], n, x), *q = read(runs[2], n, z);
    for (std::int64_t i = 0; i < n; ++i) sum[i] = p[i] + q[i];
    write(runs[0], n, sum);
  });
  Values wanted;
  for (const double base : {10, 20})
    for (int i = 0; i < 3; ++i)
      for (const double x : {1, 2, 3, 4}) wanted.push_back(base + x);
  EXPECT_EQ(out.values(), wanted);
}

TEST(Rows, DenseArraysAreOneLongRun) {
  TestArray a(Shape{8, 8, 8}), b(Shape{8, 8, 8}, DType::BFloat16);
  const Array x = a.array(), y = b.array();
  int runs_seen = 0;
  for_runs(std::array{&x, &y}, [&](const auto& runs, std::int64_t n) {
    ++runs_seen;
    EXPECT_EQ(n, 512);
    EXPECT_EQ(place(runs[0], nullptr), elements<float>(x));
    EXPECT_EQ(place(runs[1], nullptr), nullptr);
  });
  EXPECT_EQ(runs_seen, 1);
}

TEST(Rows, NothingHappensWithoutElements) {
  const Array empty{nullptr, DType::Float32, Shape{3, 0}, {}};
  for_runs(std::array{&empty}, [](const auto&, std::int64_t) { FAIL(); });
  for_rows(std::array{&empty}, [](const auto&, std::int64_t) { FAIL(); });
}

TEST(Rows, AbsentArraysGiveAbsentRuns) {
  TestArray a(Shape{5});
  const Array x = a.array(), none = absent({5});
  for_runs(std::array{&x, &none}, [](const auto& runs, std::int64_t n) {
    EXPECT_TRUE(runs[0]);
    EXPECT_FALSE(runs[1]);
    EXPECT_FALSE(runs[1].from(2));
    const float ones[5] = {1, 1, 1, 1, 1};
    write(runs[1], n, ones);
  });
}

}  // namespace
}  // namespace tidemark::cpu::rows_test
